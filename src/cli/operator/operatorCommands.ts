/** `spindle operator`: manages the operators of the service and their roles. */
import { Option } from 'commander';
import { OPERATORS, REVOKE_OPERATOR, ROTATE_OPERATOR } from '../../api/client/views/operators.js';
import { listOf } from '../output.js';
import { type OperatorCommands, withReason } from './call.js';

const expires = (): Option =>
  new Option('--expires <TIME>', 'end of validity as an RFC 3339 time, such as 2030-01-31T00:00:00Z');
const note = (): string => 'The key is shown only once. Save it now.';

export function addOperatorCommands(commands: OperatorCommands): void {
  const group = commands.group('operator', 'operators');
  commands
    .request(
      'issue <NAME>',
      'create an operator and its key, which is shown only once',
      group,
      'POST /operators',
      { body: ({ role, expires: expiresAt }, [name]) => ({ name, role, expiresAt }), note },
    )
    .addOption(
      new Option(
        '--role <ROLE>',
        'auditor: can read; support: can also block players; operator: can also change everything else; admin: can also manage operators',
      )
        .choices(['admin', 'operator', 'support', 'auditor'])
        .makeOptionMandatory(),
    )
    .addOption(expires());
  commands.request('list', 'list the operators, without their keys', group, 'GET /operators', {
    plain: ({ operators }) => listOf(OPERATORS, operators),
  });
  withReason(
    commands.change(
      'rotate <NAME>',
      'replace the key of an operator; the new key is shown only once',
      group,
      ROTATE_OPERATOR,
      { body: (options) => ({ expiresAt: options.expires }), note },
    ),
  ).addOption(expires());
  withReason(
    commands.change(
      'revoke <NAME>',
      'revoke the key of an operator and end its sessions',
      group,
      REVOKE_OPERATOR,
    ),
  );
}
