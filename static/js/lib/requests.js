// Every request of our scripts: the CSRF token goes along, and whatever goes wrong is a Refused with a sentence.

export class Refused extends Error {
  // `status`: 0 when the server could not be reached. `body`: its JSON answer, else {}.
  constructor(status, message, body = {}) {
    super(message);
    this.status = status;
    this.body = body;
  }

  get isSignedOut() {
    return this.status === 401;
  }
}

export async function getHtml(url) {
  return (await send(url)).text();
}

export async function getJson(url) {
  return (await send(url)).json();
}

// `fields`: FormData or an object. Answers the Response.
export function postForm(url, fields, { signal } = {}) {
  const body = fields instanceof FormData ? fields : new URLSearchParams(fields);
  return send(url, { method: "POST", body, signal });
}

export async function postJson(url, values) {
  const headers = { "content-type": "application/json" };
  return (await send(url, { method: "POST", headers, body: JSON.stringify(values) })).json();
}

// What the server makes of `values`, as a file with its name.
export async function postForFile(url, values) {
  const headers = { "content-type": "application/json" };
  const answer = await send(url, { method: "POST", headers, body: JSON.stringify(values) });
  const [, name] = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition")) ?? [null, "export"];
  return { file: await answer.blob(), name };
}

async function send(url, { headers, ...options } = {}) {
  const token = document.querySelector('meta[name="csrf-token"]').content;
  let response, body;
  try {
    response = await fetch(url, { ...options, headers: { ...headers, "x-csrftoken": token } });
    body = await response.blob(); // here, so that an answer that is cut off is a Refused, too
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer; try again.");
  }
  if (response.redirected || response.status === 401) throw new Refused(401, "You are signed out; sign in again in another tab.");
  const answer = new Response(body.size ? body : null, response);
  if (!response.ok) throw await refusal(answer);
  return answer;
}

async function refusal(response) {
  const fallback = `The server answered ${response.status}.`;
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/plain")) return new Refused(response.status, (await response.text()) || fallback);
  const body = type.startsWith("application/json") ? await response.json() : {};
  return new Refused(response.status, body.error?.message ?? body.error ?? body.note ?? fallback, body);
}
