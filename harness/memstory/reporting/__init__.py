"""From results to what people and programs read: results.json, report.md, the terminal; and the spool before that."""

from memstory.reporting.terminal import terminal_summary
from memstory.reporting.writing import begin_reports, read_results, report_from_spool, write_reports
from memstory.results.document import build
from memstory.results.fingerprint import make_fingerprint
from memstory.results.recordings import read_recordings
from memstory.results.redaction import redacted
from memstory.results.secret_values import Secrets, known_secrets
from memstory.results.spool import Spool

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
