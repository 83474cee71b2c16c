import datetime

from memorydojo.running.clock import FIRST_SESSION, session_time, time_of_session
from memorydojo.running.environment import fresh_environment


def _send() -> datetime.datetime:
    inbox = fresh_environment("workspace").inbox
    sent: datetime.datetime = inbox.send_email(["a@b.org"], "s", "b").timestamp
    return sent


def test_tools_read_the_sessions_time_and_it_advances() -> None:
    with session_time(FIRST_SESSION):
        first, second = _send(), _send()
    assert first == FIRST_SESSION.replace(tzinfo=None)
    assert second - first == datetime.timedelta(seconds=1)


def test_outside_a_session_tools_read_the_real_time() -> None:
    before = datetime.datetime.now()
    assert before <= _send() <= datetime.datetime.now()


def test_timestamps_are_plain_datetimes() -> None:
    with session_time(FIRST_SESSION):
        assert type(_send()) is datetime.datetime


def test_participants_keep_their_order() -> None:
    names = [f"p{n}@b.org" for n in range(20)]
    event = fresh_environment("workspace").calendar.create_event(
        "t", "d", datetime.datetime(2024, 5, 20, 9), datetime.datetime(2024, 5, 20, 10), None, list(names)
    )
    assert event.participants[:20] == names


def test_each_session_is_a_day_later() -> None:
    assert time_of_session(3) - time_of_session(1) == datetime.timedelta(days=2)
