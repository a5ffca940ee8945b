"""What the API's reference says of errors, which any operation may answer besides its own."""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

STATUSES = {
    400: "A value cannot be read; `fields` names it.",
    401: "Neither a valid token nor a session.",
    403: "The caller's role, or the token's scope, does not include this.",
    404: "No such thing, or it belongs to another team.",
    409: "Not in a state that allows this.",
    413: "The body is too long.",
    415: "The body is not application/json in UTF-8.",
    422: "A value cannot be used; `fields` names it.",
    503: "The database is busy; `Retry-After` says when to try again.",
    507: "The disk of the data folder is full.",
}
TEXT = {"type": "string"}
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "fields"],
            "properties": {
                "code": TEXT,
                "message": TEXT,
                "fields": {"type": "object", "additionalProperties": TEXT},
            },
        }
    },
}


class DocumentedApi(NinjaAPI):
    """An API whose schema names its errors."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """The schema, with STATUSES at every operation."""
        schema = super().get_openapi_schema(**options)
        schema["components"].setdefault("schemas", {})["Error"] = ERROR
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        for methods in schema["paths"].values():
            for operation in methods.values():
                for status, text in STATUSES.items():
                    operation["responses"].setdefault(status, {"description": text, "content": content})
        return schema
