/** `spindle key`: issues, lists and revokes API keys of a partner. */
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
