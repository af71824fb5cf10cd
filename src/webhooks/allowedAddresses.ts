/** Resolves the host of a webhook URL and decides whether its addresses may be called. */
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Environment } from '../domain/game.js';
import { hostOf, isLocal, isPublicAddress, judgeUrl, type UrlJudgement } from '../domain/webhookUrl.js';

/**
 * Returns all addresses of a host name, at least one.
 * @throws Error if the name has no address or no name server responds
 */
export type Resolve = (name: string) => Promise<string[]>;

const RESOLVE_TRY_MS = 1500;
const RESOLVE_TRIES = 2;
/**
 * Maximum time that a registration waits for a name server, in ms. Addresses that are unknown by then are
 * checked at the first connection.
 */
const REGISTRATION_WAIT_MS = 2000;
const LOOPBACK = ['127.0.0.1', '::1'];

/**
 * Returns a resolver that queries the name servers directly. The system's own look-up would read /etc/hosts,
 * whose names are not public, and would block one of the few threads of the process while a name server is
 * silent. Each look-up reads the system's list of name servers, which may change while the process runs.
 * @param open opens a resolver that asks the present name servers
 */
export function nameServers(open = openResolver): Resolve {
  return async (name) => {
    const resolver = open();
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    throw answers.find((answer) => answer.status === 'rejected')?.reason ?? new Error('no addresses');
  };
}

const openResolver = (): Resolver => new Resolver({ timeout: RESOLVE_TRY_MS, tries: RESOLVE_TRIES });

/** Thrown if a webhook must not be sent to an address. */
export class DisallowedError extends Error {}

/**
 * Returns the addresses of a URL to which a connection is currently allowed.
 * @throws DisallowedError if the URL or any of its addresses is not allowed. Errors of the resolver are
 * passed on.
 */
export async function allowedAddresses(
  text: string,
  environment: Environment,
  resolve: Resolve,
): Promise<string[]> {
  const { refusal, message } = judgeUrl(text, environment);
  if (refusal !== undefined) throw new DisallowedError(message);
  const url = new URL(text);
  if (isLocal(url)) return LOOPBACK;
  const host = hostOf(url);
  if (isIP(host) !== 0) return [host];
  const addresses = await resolve(host);
  const refused = addresses.find((address) => !isPublicAddress(address));
  if (refused !== undefined)
    throw new DisallowedError(`${host} resolves to ${refused}, which is not a public address`);
  return addresses;
}

/**
 * A host name that does not resolve is accepted, because an unavailable name server must not cause the
 * refusal of a valid URL. The host name is checked again at each connection, before anything is sent.
 */
export async function judgeRegistration(
  text: string,
  environment: Environment,
  resolve: Resolve,
): Promise<UrlJudgement> {
  const judgement = judgeUrl(text, environment);
  if (judgement.refusal !== undefined) return judgement;
  const patience = new Promise<void>((done) => setTimeout(done, REGISTRATION_WAIT_MS).unref());
  try {
    await Promise.race([allowedAddresses(text, environment, resolve), patience]);
    return {};
  } catch (error) {
    if (error instanceof DisallowedError)
      return { refusal: 'disallowed', message: 'must lead to a public address' };
    return {};
  }
}
