/** Runs the built `spindle` command against a service. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Client, OPERATOR_KEY } from './client.js';
import { cliOf, ROOT } from './root.js';

/** Runs a `spindle …` command that uses the operator API. */
export async function command(
  { base }: Client,
  ...args: string[]
): Promise<{ status: number; out: string; error: string }> {
  const env = { PATH: process.env.PATH, SPINDLE_URL: base, OPERATOR_API_KEY: OPERATOR_KEY };
  const child = spawn(process.execPath, [cliOf(ROOT), ...args], { env });
  let out = '';
  let error = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    error += chunk;
  });
  const [status] = (await once(child, 'close')) as [number];
  return { status, out, error };
}
