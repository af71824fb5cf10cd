/**
 * Checks whether a webhook may use a URL. This file checks the URL alone; src/webhooks/allowedAddresses.ts
 * checks every address to which the host name resolves. Both checks run at registration and again at each
 * connection (docs/contract.md §13.4).
 */
import ipaddr from 'ipaddr.js';
import type { Environment } from './game.js';

/**
 * Reason to refuse a URL. `invalid`: it is not a URL to which requests can be sent. `disallowed`: it leads to
 * a forbidden destination.
 */
export type UrlRefusal = 'invalid' | 'disallowed';

export interface UrlJudgement {
  readonly refusal?: UrlRefusal;
  /** Message that tells the caller what is wrong with the URL. */
  readonly message?: string;
}

const URL_CHARACTERS_MAX = 2048;
/**
 * Whitespace, control characters and backslashes, which the URL parser would repair or drop, and lone
 * surrogates.
 */
const UNFIT_CHARACTERS = /[\s\p{Cc}\p{Cs}\\]/u;
/**
 * Host names that denote this machine or this network, whatever address they resolve to (RFC 6761, 6762,
 * 8375; ICANN's .internal).
 */
const INTERNAL_NAMES = /(^|\.)(localhost|localdomain|local|internal|intranet|lan|home\.arpa)$/;
/**
 * Addresses at which a cloud provider (Azure) offers internal services, although the addresses lie in public
 * ranges.
 */
const INTERNAL_ADDRESSES = new Set(['168.63.129.16']);
const GLOBAL_UNICAST: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

/**
 * Returns whether an address is on the public internet. Addresses in a special range of a registry (IANA's
 * special-purpose addresses) are refused, and so are those that embed another address (IPv4-mapped, NAT64,
 * 6to4, Teredo), which would have to be checked instead.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text) || INTERNAL_ADDRESSES.has(text)) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || (address as ipaddr.IPv6).match(GLOBAL_UNICAST);
}

/** Returns the host of a URL, without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

/**
 * Returns whether a URL is `http://localhost` on any port, which is this machine. It is allowed for tests in
 * the sandbox only.
 */
export const isLocal = (url: URL): boolean => url.protocol === 'http:' && url.hostname === 'localhost';

const invalid = (message: string): UrlJudgement => ({ refusal: 'invalid', message });
const disallowed = (message: string): UrlJudgement => ({ refusal: 'disallowed', message });

/** Checks the URL itself, without resolving its host name. */
export function judgeUrl(text: string, environment: Environment): UrlJudgement {
  if (text.length > URL_CHARACTERS_MAX) return invalid(`must have at most ${URL_CHARACTERS_MAX} characters`);
  if (UNFIT_CHARACTERS.test(text) || !URL.canParse(text)) return invalid('must be a URL');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return invalid('must begin with https://');
  if (!/^https?:\/\/[^/]/i.test(text)) return invalid('must be a URL');
  if (url.username !== '' || url.password !== '') return invalid('must have no user name or password');
  if (text.includes('#')) return invalid('must have no fragment');
  if (url.port === '0') return invalid('must have a port from 1 to 65535');
  if (environment === 'sandbox' && isLocal(url)) return {};
  const host = hostOf(url);
  const isAddress = ipaddr.isValid(host);
  if (isAddress ? !isPublicAddress(host) : isInternalName(host)) {
    const isThisMachine = environment === 'sandbox' && isAddress && ipaddr.parse(host).range() === 'loopback';
    const hint = isThisMachine ? '; in the sandbox write this machine as http://localhost' : '';
    return disallowed(`must lead to a public address${hint}`);
  }
  if (url.protocol !== 'https:') return invalid('must begin with https://');
  return {};
}

/**
 * Returns whether a host name belongs to this machine or network: it has a suffix that is never public, or no
 * dot.
 */
function isInternalName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '');
  return !name.includes('.') || INTERNAL_NAMES.test(name);
}
