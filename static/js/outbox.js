// Requests leave one after the other, in the order of the keys that caused them.

export class Refused extends Error {
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

export class Outbox {
  constructor(token) {
    this.token = token;
    this.tail = Promise.resolve();
    this.numWaiting = 0;
  }

  // Resolves with the answer; rejects with Refused when the server said no or could not be reached.
  post(url, body) {
    this.numWaiting += 1;
    const sent = this.tail.then(() => this.send(url, body));
    this.tail = sent.catch(() => {}).finally(() => (this.numWaiting -= 1));
    return sent;
  }

  async send(url, body) {
    let response;
    try {
      response = await fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": this.token },
        body: JSON.stringify(body),
      });
    } catch {
      throw new Refused(0, "The server does not answer. This label was not stored.", {});
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Refused(response.status, answer.error?.message ?? `The server answered ${response.status}. This label was not stored.`, answer);
    return answer;
  }
}
