/** Reads the service's public log: the newest checkpoint note, the policy and the verifier. */
import { ApiFault } from './api.js';

/**
 * Reads a text file below `/log/`.
 *
 * @throws ApiFault if the file does not exist
 */
async function logText(name: 'checkpoint' | 'policy'): Promise<string> {
  let answer: Response;
  try {
    answer = await fetch(`/log/${name}`);
  } catch {
    throw new ApiFault(0, '', 'The service is not responding');
  }
  if (answer.ok) return answer.text();
  throw new ApiFault(
    answer.status,
    '',
    answer.status === 404 ? 'The log has no records yet' : 'The log is not responding',
  );
}

export interface Witness {
  readonly name: string;
  readonly vkey: string;
  /**
   * Time at which the witness signed the newest checkpoint, in seconds since 1970. Undefined: the witness has
   * not signed it.
   */
  readonly signedAt: number | undefined;
}

export interface ShownLog {
  readonly origin: string;
  readonly size: number;
  readonly root: string;
  /** Keys of the log that are currently in force. */
  readonly vkeys: readonly string[];
  readonly witnesses: readonly Witness[];
  /** The quorum line of the policy. */
  readonly quorum: string;
}

const TIME_AT = 4;

/** Returns the time of a cosignature, which consists of key id (4 bytes), seconds (u64) and signature. */
function timeOf(encoded: string): number {
  const bytes = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
  return Number(new DataView(bytes.buffer).getBigUint64(TIME_AT));
}

/** Parses a note and a policy (C2SP signed-note, tlog-policy) for display, without verifying them. */
export function shownLog(note: string, policy: string): ShownLog {
  const [text = '', signatures = ''] = note.split(/\n\n(?=— )/u);
  const [origin = '', size = '0', root = ''] = text.split('\n');
  const lines = policy.split('\n').map((line) => line.split(/[ \t]+/));
  const signedBy = (vkey: string): number | undefined => {
    const name = vkey.split('+', 1)[0];
    const line = signatures.split('\n').find((each) => each.startsWith(`— ${name} `));
    return line === undefined ? undefined : timeOf(line.split(' ')[2]!);
  };
  return {
    origin,
    size: Number(size),
    root,
    vkeys: lines.filter(([word]) => word === 'log').map(([, vkey = '']) => vkey),
    witnesses: lines
      .filter(([word]) => word === 'witness')
      .map(([, name = '', vkey = '']) => ({ name, vkey, signedAt: signedBy(vkey) })),
    quorum: lines.find(([word]) => word === 'quorum')?.[1] ?? 'none',
  };
}

export async function readLog(): Promise<ShownLog> {
  const [note, policy] = await Promise.all([logText('checkpoint'), logText('policy')]);
  return shownLog(note, policy);
}

interface Verifier {
  verify(proof: unknown, options: { policy: string }): Promise<readonly string[]>;
}
/**
 * Path of the verifier module, which the service publishes for everybody. It is not part of the console's own
 * script.
 */
const VERIFIER = '/verify.mjs';

/** Verifies a proof with the keys that this service publishes, and returns its faults. */
export async function faultsOf(proof: unknown): Promise<readonly string[]> {
  const [policy, { verify }] = await Promise.all([
    logText('policy'),
    import(/* @vite-ignore */ VERIFIER) as Promise<Verifier>,
  ]);
  return verify(proof, { policy });
}
