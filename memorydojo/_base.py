"""The base classes of everything that is saved or configured."""

import operator
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, ValidationError

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError


class Frozen(BaseModel):
    """An immutable model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class UserInput(Frozen):
    """A model that users construct: a wrong value is an `InvalidInputError` that names the field."""

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidInputError(f"{type(self).__name__}: {reason(error)}") from None


def reason(error: ValidationError) -> str:
    """What is wrong first, on one line, without the (perhaps hostile) text around it."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    return plain(f"{where}: {first['msg']}" if where else first["msg"], 300)


def _whole(value: object) -> object:
    # NumPy's integers are whole numbers too; True and "3" are none.
    return operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else value


#: A whole number; no text and no truth value is taken for one.
WholeNumber = Annotated[int, Strict(), BeforeValidator(_whole)]
