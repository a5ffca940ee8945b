"""Static files out of the collected folder, served by WhiteNoise under ASGI."""

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise, answering with whole bodies.

    Its own streamed response is a synchronous iterator, which Django reads in a thread chunk by chunk
    under ASGI and warns about; the largest file here is under 2 MB, so reading it at once is cheaper.
    """

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file:
                body = found.file.read()
        response = HttpResponse(body, status=found.status.value)
        del response["content-type"]
        for name, value in found.headers:
            response[name] = value
        return response
