/** `spindle operator`: manages the operators of the service and their roles. */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { withYes } from '../confirm.js';
import { keyValues, type TableColumn, table } from '../output.js';
import { auditReasonOf, type Call, note, type OperatorCommands, type Schemas, withReason } from './call.js';

const COLUMNS: readonly TableColumn<Schemas['Operator']>[] = [
  { heading: 'name', value: (row) => row.name },
  { heading: 'role', value: (row) => row.role },
  { heading: 'begins with', value: (row) => row.prefix },
  { heading: 'status', value: (row) => row.status },
  { heading: 'key issued', value: (row) => row.issuedAt },
  { heading: 'expires', value: (row) => row.expiresAt },
];

const SHOWN_ONCE = 'The key is shown only once. Save it now.';
const expires = (): Option =>
  new Option('--expires <TIME>', 'end of validity as an RFC 3339 time, such as 2030-01-31T00:00:00Z');

export function addOperatorCommands(commands: OperatorCommands): void {
  const group = commands.group('operator', 'operators');
  commands
    .add('issue <NAME>', 'create an operator and its key, which is shown only once', issue, group)
    .addOption(
      new Option(
        '--role <ROLE>',
        'auditor: can read; support: can also block players; operator: can also change everything else; admin: can also manage operators',
      )
        .choices(['admin', 'operator', 'support', 'auditor'])
        .makeOptionMandatory(),
    )
    .addOption(expires());
  commands.add('list', 'list the operators, without their keys', list, group);
  withReason(
    withYes(
      commands
        .add('rotate <NAME>', 'replace the key of an operator; the new key is shown only once', rotate, group)
        .addOption(expires()),
    ),
  );
  withReason(
    withYes(
      commands.add('revoke <NAME>', 'revoke the key of an operator and end its sessions', revoke, group),
    ),
  );
}

const expiryOf = ({ expires: time }: { expires?: string }) => (time === undefined ? {} : { expiresAt: time });

async function issue({ client, words, options, print }: Call): Promise<void> {
  const given = options as { role: Schemas['OperatorRole']; expires?: string };
  const body = { name: words[0]!, role: given.role, ...expiryOf(given) };
  print(await bodyOf(client.POST('/operators', { body })), keyValues);
  note(SHOWN_ONCE);
}

async function list({ client, print }: Call): Promise<void> {
  print(await bodyOf(client.GET('/operators', {})), ({ operators }) => table(COLUMNS, operators));
}

async function rotate(call: Call): Promise<void> {
  const { client, words, options, print, confirm } = call;
  await confirm(
    `This will replace the key of ${words[0]} permanently. The current key stops working at once.`,
  );
  const params = { path: { name: words[0]! } };
  const body = { ...expiryOf(options as { expires?: string }), ...auditReasonOf(call) };
  print(await bodyOf(client.POST('/operators/{name}/rotate', { params, body })), keyValues);
  note(SHOWN_ONCE);
}

async function revoke(call: Call): Promise<void> {
  const { client, words, print, confirm } = call;
  const name = words[0]!;
  await confirm(`This will revoke the key of ${name} permanently and end its sessions.`);
  const params = { path: { name }, query: auditReasonOf(call) };
  print(
    await bodyOf(client.DELETE('/operators/{name}', { params })),
    () => `The key of ${name} was revoked.\n`,
  );
}
