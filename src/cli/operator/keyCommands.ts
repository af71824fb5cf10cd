/** `spindle key`: issues, lists, rotates and revokes API keys of a partner, and changes their expiry. */
import { InvalidArgumentError, Option } from 'commander';
import { endKey, KEYS, REVOKE_KEY } from '../../api/client/views/partners.js';
import { listOf } from '../output.js';
import { type OperatorCommands, withReason } from './call.js';

export function addKeyCommands(commands: OperatorCommands): void {
  const group = commands.group('key', 'API keys of a partner');
  commands
    .request('issue <PARTNER>', 'issue a key, which is shown only once', group, 'POST /partners/{id}/keys', {
      body: ({ name, expires }) => ({ name, expiresAt: expires }),
      note: () => 'The key is shown only once. Save it now.',
    })
    .option('--name <NAME>', 'purpose of the key')
    .option('--expires <TIME>', 'end of validity as an RFC 3339 time, such as 2030-01-31T00:00:00Z');
  commands.request(
    'list <PARTNER>',
    'list the keys, without their secrets',
    group,
    'GET /partners/{id}/keys',
    {
      plain: ({ keys }) => listOf(KEYS, keys),
    },
  );
  withReason(
    commands.request(
      'rotate <PARTNER> <KEY_ID>',
      'issue a key that replaces another one, which expires after an overlap',
      group,
      'POST /partners/{id}/keys/{keyId}/rotate',
      {
        body: ({ name, expires, overlap }) => ({ name, expiresAt: expires, overlapSeconds: overlap }),
        note: ({ replacedKeyId, replacedExpiresAt }) =>
          `The key is shown only once. Save it now. Key ${replacedKeyId} is valid until ${replacedExpiresAt}.`,
      },
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
    commands.change(
      'update <PARTNER> <KEY_ID>',
      'change the time at which a key expires',
      group,
      ({ expires }) => endKey(expires === 'none' ? null : String(expires)),
    ),
  ).requiredOption(
    '--expires <TIME>',
    'new end of validity as an RFC 3339 time in the future, or none for no end',
  );
  withReason(commands.change('revoke <PARTNER> <KEY_ID>', 'revoke a key', group, REVOKE_KEY));
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400 };

/** Parses a duration, such as `24h`, and returns it in seconds. */
function seconds(text: string): number {
  const [, count, unit] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined)
    throw new InvalidArgumentError('It must be a duration, such as 30m, 24h or 7d.');
  return Number(count) * UNIT_SECONDS[unit]!;
}
