/**
 * Decides which proxies in front of the service are trusted to report a client's address, and determines that
 * address.
 */
import ipaddr from 'ipaddr.js';

const HOPS_MAX = 10;
/**
 * Prefix length of the smallest network that an IPv6 client is given, in bits. The client may use any address
 * in this network.
 */
const IPV6_CLIENT_BITS = 64;
const IPV6_SITE_BITS = 48;

/** Origin of a request, as far as it is known. */
export interface ConnectionOrigin {
  /** Address of the remote end of the connection. */
  readonly remote: string;
  /** Address in a PROXY protocol header of the connection. Empty if there was none. */
  readonly proxied: string;
  /** Value of the header X-Forwarded-For. Empty if it was not sent. */
  readonly forwardedFor: string;
}

/**
 * Returns the canonical text of an address, with an IPv4-mapped IPv6 address as IPv4. Undefined if the text
 * is not an address.
 */
function canonical(text: string): string | undefined {
  const trimmed = text.trim();
  if (!ipaddr.isValid(trimmed)) return undefined;
  return ipaddr.process(trimmed).toString();
}

export class TrustedProxies {
  readonly #hops: number;
  readonly #networks: readonly [ipaddr.IPv4 | ipaddr.IPv6, number][];

  /**
   * @param setting empty: no proxy is trusted; a number from 1 to 10: the number of proxies in front of every
   * client; otherwise addresses and networks (CIDR) of proxies, separated by commas
   * @throws Error if the text has none of these forms
   */
  constructor(setting = '') {
    const isNumber = /^\d+$/.test(setting);
    this.#hops = isNumber ? Number(setting) : 0;
    if (this.#hops > HOPS_MAX) throw new Error(`must be at most ${HOPS_MAX} hops`);
    this.#networks =
      isNumber || setting === '' ? [] : setting.split(',').map((part) => networkOf(part.trim()));
  }

  get areAny(): boolean {
    return this.#hops > 0 || this.#networks.length > 0;
  }

  /**
   * Returns whether the address belongs to a trusted proxy, whose connections may carry the requests of many
   * clients.
   */
  trusts(address: string): boolean {
    return this.#isProxy(address, 0);
  }

  /** Returns the address nearest to the client that the connection or a trusted proxy reports. */
  clientOf({ remote, proxied, forwardedFor }: ConnectionOrigin): string {
    let client = canonical(remote) ?? remote;
    if (!this.areAny) return client;
    const nearestLast = [...forwardedFor.split(','), proxied].filter((part) => part.trim() !== '');
    for (let hop = 0; nearestLast.length > 0 && this.#isProxy(client, hop); hop++) {
      const next = canonical(nearestLast.pop()!);
      if (next === undefined) break;
      client = next;
    }
    return client;
  }

  #isProxy(address: string, hop: number): boolean {
    if (hop < this.#hops) return true;
    if (this.#networks.length === 0 || !ipaddr.isValid(address)) return false;
    const parsed = ipaddr.process(address);
    return this.#networks.some(
      ([network, bits]) => parsed.kind() === network.kind() && parsed.match(network as ipaddr.IPv4, bits),
    );
  }
}

function networkOf(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  try {
    if (text.includes('/')) return ipaddr.parseCIDR(text);
    const address = ipaddr.parse(text);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  } catch {
    throw new Error(`must be a number of hops, or a list of addresses and networks, but has «${text}»`);
  }
}

/**
 * Returns the network that one client can use freely: an IPv4 address, or the /64 network of an IPv6 address.
 */
export const clientNetwork = (address: string): string => networkAround(address, IPV6_CLIENT_BITS);

/**
 * Returns the largest network that one customer may have been given: an IPv4 address, or the /48 network of
 * an IPv6 address.
 */
export const siteNetwork = (address: string): string => networkAround(address, IPV6_SITE_BITS);

function networkAround(address: string, ipv6Bits: number): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${ipv6Bits}`)}/${ipv6Bits}`;
}

/** Returns whether an address is a loopback address, whose user is on the machine of the service. */
export const isLoopback = (address: string): boolean =>
  ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
