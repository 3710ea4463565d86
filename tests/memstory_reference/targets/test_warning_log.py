import logging

from memstory_reference.targets.system_target import WarningLog


def test_warnings_of_the_reference_are_kept_while_attached():
    log, logger = WarningLog(), logging.getLogger("memstory_reference.systems.topics")
    logger.warning("before")
    log.attach()
    logger.warning("number %d", 1)
    logger.info("not worth a line")
    logging.getLogger("elsewhere").warning("foreign")
    log.detach()
    logger.warning("after")
    assert log.data() == [
        {"number": 1, "level": "WARNING", "logger": "memstory_reference.systems.topics", "message": "number 1"}
    ]
    assert log.data(since=1) == []
