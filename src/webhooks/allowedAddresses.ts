/** What the name of a webhook's URL resolves to, and whether that may be called. */
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Environment } from '../domain/game.js';
import { hostOf, isLocal, isPublicAddress, judgeUrl, type UrlJudgement } from '../domain/webhookUrl.js';

/** All addresses of a name, at least one. @throws where it has none, or nobody answers. */
export type Resolve = (name: string) => Promise<string[]>;

const RESOLVE_TRY_MS = 1500;
const RESOLVE_TRIES = 2;
/** A registration waits no longer for a name server; what is not known then is judged at the first connection. */
const REGISTRATION_WAIT_MS = 2000;
const LOOPBACK = ['127.0.0.1', '::1'];

/**
 * Asks the name servers themselves. The system's own look-up would read /etc/hosts, whose names are nobody's public ones,
 * and hold one of the few threads of the process for as long as a name server is silent.
 */
export function nameServers(): Resolve {
  const resolver = new Resolver({ timeout: RESOLVE_TRY_MS, tries: RESOLVE_TRIES });
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    throw answers.find((answer) => answer.status === 'rejected')?.reason ?? new Error('no addresses');
  };
}

/** A webhook must not be called there. */
export class DisallowedError extends Error {}

/**
 * The addresses that may be connected to for a URL, judged now.
 * @throws DisallowedError where the URL, or any of its addresses, is not allowed; what the resolver throws.
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
  if (refused !== undefined) throw new DisallowedError(`${host} resolves to ${refused}, which is not public`);
  return addresses;
}

/**
 * Judges a URL at its registration. A name that does not resolve now is let through: a name server that is away for a
 * moment must not refuse a good URL, and nothing is sent before the name was judged at the connection.
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
