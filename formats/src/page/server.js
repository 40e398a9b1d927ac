// Talks to `mapper view`, if there is one behind this page: a page in a file has only what is in it.

const server = {
  /** Whether there is a server at all. */
  exists: false,
  token: '',
  lost: false,

  /** The token comes in the part of the address that browsers keep to themselves, or is asked for. */
  begin() {
    const given = /^#token=(.+)$/.exec(location.hash);
    if (given) {
      this.token = decodeURIComponent(given[1]);
      history.replaceState(null, '', location.pathname);
    }
  },

  headers() { return this.token ? { Authorization: `Bearer ${this.token}` } : {}; },

  async get(path) { return this.answer(await fetch(path, { headers: this.headers(), cache: 'no-store' })); },

  async post(path, body) {
    return this.answer(await fetch(path, { method: 'POST', headers: { ...this.headers(), 'Content-Type': 'application/json' }, body: JSON.stringify(body) }));
  },

  async answer(response) {
    if (response.status === 401) throw new Refused();
    const text = await response.text();
    if (response.status === 410) throw new Gone(text.trim());
    if (!response.ok) throw new Declined(text.trim() || `the server answered ${response.status}`);
    return JSON.parse(text);
  },

  /**
   * Follows the events of the server for ever. After a break, of the network or of a laptop's sleep, it asks anew, and the
   * first event tells all that there is to know. EventSource cannot send a token, so the stream is read by fetch.
   */
  async follow(take) {
    let pause = 500;
    for (;;) {
      try {
        const silence = new AbortController();
        const response = await fetch('api/events', { headers: this.headers(), cache: 'no-store', signal: silence.signal });
        if (response.status === 401) throw new Refused();
        if (!response.ok) throw new Declined((await response.text()).trim());
        pause = 500;
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = '';
        for (;;) {
          // The server says something every few seconds: who says nothing for longer is gone.
          const timer = setTimeout(() => silence.abort(), 15000);
          const { value, done } = await reader.read();
          clearTimeout(timer);
          if (done) break;
          this.found();
          text += value;
          const events = text.split('\n\n');
          text = events.pop();
          for (const event of events) {
            const data = event.split('\n').filter(line => line.startsWith('data: ')).map(line => line.slice(6)).join('\n');
            if (data) await take(JSON.parse(data));
          }
        }
      } catch (error) {
        if (error instanceof Refused) { await view.askToken(); continue; }
        this.lose(error instanceof Declined ? `says: ${error.message}` : undefined);
      }
      await new Promise(resolve => setTimeout(resolve, pause));
      pause = Math.min(5000, pause * 1.6);
    }
  },

  lose(why = 'does not answer') {
    if (!this.lost) {
      this.lost = true;
      banner(`The server ${why} since ${new Date().toLocaleTimeString()}. What is shown is from then; this page goes on asking.`);
    }
  },

  found() {
    if (this.lost) { this.lost = false; banner(''); }
  },
};

/** The server wants another token. */
class Refused extends Error {}

/** The server answered, and not with what was asked for. */
class Declined extends Error {}

/** The server does not keep what was asked for any more. */
class Gone extends Declined {}

function banner(text) {
  const element = document.getElementById('banner');
  element.textContent = text;
  element.hidden = !text;
}
