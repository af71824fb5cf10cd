/**
 * Counts by client in a window, with a bound on how many are counted apart. Where a further client would exceed the bound, the
 * clients of the network that floods are counted together: of the narrowest that has an eighth of them, /56, /48 or /32 (IPv4: /24
 * or /16). Where none has, many crowded networks are joined until there is room, the most crowded first. Everybody else keeps a
 * count of their own.
 */

/** Clients that are counted apart. */
const CLIENTS_MAX = 10_000;
/** Clients of a network that floods. Once there is no room it is made for as many further ones, so that it is seldom done. */
const FLOOD = CLIENTS_MAX / 8;
/** A network of fewer clients is not joined: it is nobody's flood. */
const CROWD = 16;
/** Widths of the networks that share a count, in bits. */
const IPV6_WIDTHS = [56, 48, 32];
const IPV4_WIDTHS = [24, 16];
/** Name under which clients are counted that have no place, nor a network that has. */
const OTHERS = 'others';
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/;

/** What a client is counted under, and how often it was. */
export interface Counted {
  /** The client, the network that shares the count, such as `2001:db8::/48`, or `others`. */
  readonly name: string;
  readonly count: number;
}

export class ClientCounts {
  readonly #counts = new Map<string, number>();
  readonly #windowMs: number;
  readonly #nowMs: () => number;
  #window = 0;
  /** Widths that have shared counts in this window. */
  #sharedWidths: readonly number[] = [];
  /** No network is crowded: further clients have no place for the rest of the window. */
  #isSpread = false;

  constructor(windowSeconds: number, nowMs: () => number) {
    this.#windowMs = windowSeconds * 1000;
    this.#nowMs = nowMs;
  }

  /** Counts a request. @param client an IPv4 address or an IPv6 /64, in canonical text */
  count(client: string): Counted {
    const window = Math.floor(this.#nowMs() / this.#windowMs);
    if (window !== this.#window) {
      this.#window = window;
      this.#counts.clear();
      this.#sharedWidths = [];
      this.#isSpread = false;
    }
    const name = this.#nameOf(client);
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return { name, count };
  }

  #nameOf(client: string): string {
    const known = this.#knownName(client);
    if (known !== undefined) return known;
    if (this.#counts.size < CLIENTS_MAX) return client;
    this.#makeRoom();
    return this.#knownName(client) ?? (this.#counts.size < CLIENTS_MAX ? client : OTHERS);
  }

  #knownName(client: string): string | undefined {
    if (this.#counts.has(client)) return client;
    for (const width of this.#sharedWidths) {
      const network = networkOf(client, width);
      if (network !== undefined && this.#counts.has(network)) return network;
    }
    return undefined;
  }

  /** Joins the clients of crowded networks. */
  #makeRoom(): void {
    if (this.#isSpread) return;
    for (const least of [FLOOD, CROWD])
      for (const width of [...IPV6_WIDTHS, ...IPV4_WIDTHS]) {
        this.#join(width, least);
        if (this.#hasRoom()) return;
      }
    this.#isSpread = true;
  }

  #hasRoom(): boolean {
    return this.#counts.size <= CLIENTS_MAX - FLOOD;
  }

  /** Joins the networks of a width that have so many members, the most crowded first, until there is room. */
  #join(width: number, least: number): void {
    const members = new Map<string, string[]>();
    for (const name of this.#counts.keys()) {
      const network = networkOf(name, width);
      if (network === undefined) continue;
      const known = members.get(network);
      if (known === undefined) members.set(network, [name]);
      else known.push(name);
    }
    const crowded = [...members].filter(([, names]) => names.length > least);
    crowded.sort(([, a], [, b]) => b.length - a.length);
    for (const [network, names] of crowded) {
      if (this.#hasRoom()) return;
      let sum = 0;
      for (const name of names) {
        sum += this.#counts.get(name)!;
        this.#counts.delete(name);
      }
      this.#counts.set(network, sum);
      if (!this.#sharedWidths.includes(width)) this.#sharedWidths = [...this.#sharedWidths, width];
    }
  }
}

/** The wider network of a client or of a network; undefined: it is of the other family, as wide already, or no address. */
function networkOf(name: string, width: number): string | undefined {
  const [address = '', bits] = name.split('/');
  if (bits !== undefined && Number(bits) <= width) return undefined;
  if (address.includes(':')) return IPV6_WIDTHS.includes(width) ? ipv6Network(address, width) : undefined;
  return IPV4_WIDTHS.includes(width) && IPV4.test(address) ? ipv4Network(address, width) : undefined;
}

/** @param address with all four bytes, or with those of a network */
const ipv4Network = (address: string, width: number): string =>
  `${address
    .split('.')
    .map((byte, place) => (place < width / 8 ? byte : '0'))
    .join('.')}/${width}`;

/** @param address of a /64 or wider: only zeros lie behind `::`, which stands at its end */
function ipv6Network(address: string, width: number): string {
  const words = address
    .slice(0, address.indexOf('::'))
    .split(':')
    .slice(0, Math.ceil(width / 16));
  if (width === 56 && words.length === 4) words[3] = (Number.parseInt(words[3]!, 16) & 0xff00).toString(16);
  while (words.at(-1) === '0') words.pop();
  return `${words.join(':')}::/${width}`;
}
