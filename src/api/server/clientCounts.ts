/**
 * Counts requests by client in a window, with a bound on the number of counters. When a new client would
 * exceed the bound, a network that floods gets one shared counter: the narrowest network that holds at least
 * an eighth of the counted clients (/56, /48 or /32 for IPv6; /24 or /16 for IPv4). If no network is that
 * large, crowded networks are joined, the most crowded first, until there is room. All other clients keep
 * counters of their own.
 */

const CLIENTS_MAX = 10_000;
/**
 * Number of clients from which a network counts as a flood. Joining such a network also makes room for as
 * many new clients, so networks are rarely joined.
 */
const FLOOD = CLIENTS_MAX / 8;
/**
 * Minimum number of clients in a network that is joined. Smaller networks cannot be the source of a flood.
 */
const CROWD = 16;
/** Widths of the networks that can share a counter, in bits. */
const IPV6_WIDTHS = [56, 48, 32];
const IPV4_WIDTHS = [24, 16];
const OTHERS = 'others';
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/;

export interface Counted {
  /** The client, or the network that shares the counter (such as `2001:db8::/48`), or `others`. */
  readonly name: string;
  readonly count: number;
}

export class ClientCounts {
  readonly #counts = new Map<string, number>();
  readonly #windowMs: number;
  #window = 0;
  #sharedWidths: readonly number[] = [];
  /**
   * True if no network is crowded enough to be joined. New clients then count as `others` until the window
   * ends.
   */
  #isSpread = false;

  constructor(
    windowSeconds: number,
    private readonly nowMs: () => number,
  ) {
    this.#windowMs = windowSeconds * 1000;
  }

  /** @param client an IPv4 address or an IPv6 /64, in canonical text form */
  count(client: string): Counted {
    const window = Math.floor(this.nowMs() / this.#windowMs);
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

  /** Makes room for further clients by joining the clients of crowded networks. */
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

  /**
   * Joins the networks of one width that have at least `least` members, the most crowded first, until there
   * is room.
   */
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

/** Returns undefined if the address is of the other IP family, is already that wide, or is not an address. */
function networkOf(name: string, width: number): string | undefined {
  const [address = '', bits] = name.split('/');
  if (bits !== undefined && Number(bits) <= width) return undefined;
  if (address.includes(':')) return IPV6_WIDTHS.includes(width) ? ipv6Network(address, width) : undefined;
  return IPV4_WIDTHS.includes(width) && IPV4.test(address) ? ipv4Network(address, width) : undefined;
}

/** @param address all four bytes of an IPv4 address, or only the bytes of its network */
const ipv4Network = (address: string, width: number): string =>
  `${address
    .split('.')
    .map((byte, place) => (place < width / 8 ? byte : '0'))
    .join('.')}/${width}`;

/** @param address an IPv6 /64 or a wider network, whose text ends with `::` for the remaining zeros */
function ipv6Network(address: string, width: number): string {
  const words = address
    .slice(0, address.indexOf('::'))
    .split(':')
    .slice(0, Math.ceil(width / 16));
  if (width === 56 && words.length === 4) words[3] = (Number.parseInt(words[3]!, 16) & 0xff00).toString(16);
  while (words.at(-1) === '0') words.pop();
  return `${words.join(':')}::/${width}`;
}
