from memorydojo.errors import causes


def test_causes_that_lead_back_to_an_error_are_told_once() -> None:
    inner, outer = ValueError("inner"), RuntimeError("outer")
    outer.__cause__, inner.__context__ = inner, outer
    assert list(causes(inner)) == [inner, outer]
    assert list(causes(outer)) == [outer, inner]
