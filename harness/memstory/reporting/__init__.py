"""From results to what people and programs read: results.json, report.md, the terminal; and the spool before that."""

from memstory.reporting.document import build
from memstory.reporting.fingerprint import make_fingerprint
from memstory.reporting.recordings import read_recordings
from memstory.reporting.redaction import redacted
from memstory.reporting.secret_values import Secrets, known_secrets
from memstory.reporting.spool import Spool
from memstory.reporting.terminal import terminal_summary
from memstory.reporting.writing import begin_reports, read_results, report_from_spool, write_reports

__all__ = [
    "Secrets",
    "Spool",
    "begin_reports",
    "build",
    "known_secrets",
    "make_fingerprint",
    "read_recordings",
    "read_results",
    "redacted",
    "report_from_spool",
    "terminal_summary",
    "write_reports",
]
