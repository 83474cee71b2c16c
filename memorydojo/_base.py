"""The base class of everything that is saved or configured."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
