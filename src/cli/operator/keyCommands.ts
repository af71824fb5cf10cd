/** `spindle key`: issues, lists, rotates and revokes API keys of a partner, and changes their expiry. */
import { InvalidArgumentError, Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { whole } from '../command.js';
import { withYes } from '../confirm.js';
import { keyValues, type TableColumn, table } from '../output.js';
import { auditReasonOf, type Call, note, type OperatorCommands, type Schemas, withReason } from './call.js';
import { partnerIdOf } from './names.js';

const COLUMNS: readonly TableColumn<Schemas['ApiKey']>[] = [
  { heading: 'id', value: (row) => row.keyId, kind: 'number' },
  { heading: 'name', value: (row) => row.name },
  { heading: 'begins with', value: (row) => row.prefix },
  { heading: 'status', value: (row) => row.status },
  { heading: 'created', value: (row) => row.createdAt },
  { heading: 'expires', value: (row) => row.expiresAt },
  { heading: 'last used', value: (row) => row.lastUsedAt },
];

export function addKeyCommands(commands: OperatorCommands): void {
  const group = commands.group('key', 'API keys of a partner');
  commands
    .add('issue <PARTNER>', 'issue a key, which is shown only once', issueKey, group)
    .option('--name <NAME>', 'purpose of the key')
    .option('--expires <TIME>', 'end of validity as an RFC 3339 time, such as 2030-01-31T00:00:00Z');
  commands.add('list <PARTNER>', 'list the keys, without their secrets', listKeys, group);
  withReason(
    commands.add(
      'rotate <PARTNER> <KEY_ID>',
      'issue a key that replaces another one, which expires after an overlap',
      rotateKey,
      group,
    ),
  )
    .addOption(
      new Option('--overlap <DURATION>', 'how long the replaced key stays valid, such as 30m, 24h or 7d')
        .argParser(seconds)
        .default(24 * 3600, '24h'),
    )
    .option('--name <NAME>', 'purpose of the new key (default: as the replaced key)')
    .option('--expires <TIME>', 'end of validity of the new key, as an RFC 3339 time (default: none)');
  withReason(
    withYes(
      commands.add('update <PARTNER> <KEY_ID>', 'change the time at which a key expires', updateKey, group),
    ),
  ).requiredOption(
    '--expires <TIME>',
    'new end of validity as an RFC 3339 time in the future, or none for no end',
  );
  withReason(withYes(commands.add('revoke <PARTNER> <KEY_ID>', 'revoke a key', revokeKey, group)));
}

async function issueKey({ client, words, options, print }: Call): Promise<void> {
  const { name, expires } = options as { name?: string; expires?: string };
  const params = { path: { id: await partnerIdOf(client, words[0]!) } };
  const body = {
    ...(name === undefined ? {} : { name }),
    ...(expires === undefined ? {} : { expiresAt: expires }),
  };
  print(await bodyOf(client.POST('/partners/{id}/keys', { params, body })), keyValues);
  note('The key is shown only once. Save it now.');
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400 };

/** Parses a duration, such as `24h`, and returns it in seconds. */
function seconds(text: string): number {
  const [, count, unit] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined)
    throw new InvalidArgumentError('It must be a duration, such as 30m, 24h or 7d.');
  return Number(count) * UNIT_SECONDS[unit]!;
}

async function rotateKey(call: Call): Promise<void> {
  const { client, words, options, print } = call;
  const { name, expires, overlap } = options as { name?: string; expires?: string; overlap: number };
  const keyId = whole(words[1], 'KEY_ID');
  const params = { path: { id: await partnerIdOf(client, words[0]!), keyId } };
  const body = {
    overlapSeconds: overlap,
    ...(name === undefined ? {} : { name }),
    ...(expires === undefined ? {} : { expiresAt: expires }),
    ...auditReasonOf(call),
  };
  const rotated = await bodyOf(client.POST('/partners/{id}/keys/{keyId}/rotate', { params, body }));
  print(rotated, keyValues);
  note(`The key is shown only once. Save it now. Key ${keyId} is valid until ${rotated.replacedExpiresAt}.`);
}

async function updateKey(call: Call): Promise<void> {
  const { client, words, options, print, confirm } = call;
  const keyId = whole(words[1], 'KEY_ID');
  const id = await partnerIdOf(client, words[0]!);
  const expiresAt = options.expires === 'none' ? null : String(options.expires);
  await confirm(
    expiresAt === null
      ? `Key ${keyId} of ${words[0]} will never expire. It stays valid until somebody revokes it.`
      : `All requests with key ${keyId} of ${words[0]} will be refused from ${expiresAt} on.`,
  );
  const params = { path: { id, keyId } };
  const body = { expiresAt, ...auditReasonOf(call) };
  print(await bodyOf(client.PATCH('/partners/{id}/keys/{keyId}', { params, body })), keyValues);
}

async function listKeys({ client, words, print }: Call): Promise<void> {
  const params = { path: { id: await partnerIdOf(client, words[0]!) } };
  print(await bodyOf(client.GET('/partners/{id}/keys', { params })), ({ keys }) => table(COLUMNS, keys));
}

async function revokeKey(call: Call): Promise<void> {
  const { client, words, print, confirm } = call;
  const keyId = whole(words[1], 'KEY_ID');
  const id = await partnerIdOf(client, words[0]!);
  await confirm(`This will revoke key ${keyId} of ${words[0]} permanently.`);
  const params = { path: { id, keyId }, query: auditReasonOf(call) };
  print(
    await bodyOf(client.DELETE('/partners/{id}/keys/{keyId}', { params })),
    () => `Key ${keyId} of partner ${id} was revoked.\n`,
  );
}
