/** E-mails: the events that are also sent by e-mail, and their plain-text templates. */
import type { EventData, EventType, OperatorEvent } from './webhook.js';

/** Events for which a partner's contact gets an e-mail. */
export const EMAILED_TO_PARTNER: ReadonlySet<EventType> = new Set([
  'api.version.deprecated',
  'api_key.expiring',
  'game.status_changed',
  'webhook.deactivated',
]);

type EmailedType =
  | 'api.version.deprecated'
  | 'api_key.expiring'
  | 'game.status_changed'
  | 'webhook.deactivated'
  | 'settlement.overdue'
  | OperatorEvent;

export interface EmailText {
  readonly subject: string;
  /** Text of the e-mail, with lines that end in LF. */
  readonly text: string;
}

const TEMPLATES: {
  readonly [Type in EmailedType]: (
    data: EventData[Type],
    brand: string,
  ) => { subject: string; lines: string[] };
} = {
  'api.version.deprecated': ({ version, deprecatedAt, sunsetAt, successor, migrationUrl }, brand) => ({
    subject: `${brand} API ${version} ends on ${sunsetAt.slice(0, 10)}`,
    lines: [
      `API ${version} is deprecated from ${deprecatedAt} on. From ${sunsetAt} on, every request to it gets the HTTP status 410 (Gone).`,
      successor === null ? '' : `Please move to ${successor} before then.`,
      migrationUrl === null ? '' : `Migration guide: ${migrationUrl}`,
    ],
  }),
  'api_key.expiring': ({ keyId, name, expiresAt, daysLeft }, brand) => ({
    subject: `${brand} API key ${keyId} expires in ${daysLeft} ${daysLeft === 1 ? 'day' : 'days'}`,
    lines: [
      `Your API key ${keyId}${name === null ? '' : ` (${name})`} expires at ${expiresAt}.`,
      'Please ask us for a new key, and replace this key before it expires. After that, requests with this key are refused.',
    ],
  }),
  'game.status_changed': ({ gameId, status, reason }, brand) => {
    const isOfMany = reason === 'SWITCH' || reason === 'PARTNER_SWITCH';
    const games = isOfMany ? 'Your games' : `Game ${gameId}`;
    const goesOn = status === 'ACTIVE';
    return {
      subject: `${brand}: ${games.toLowerCase()} ${goesOn ? (isOfMany ? 'have resumed' : 'has resumed') : isOfMany ? 'have stopped' : 'has stopped'}`,
      lines: [
        `${games} now ${isOfMany ? 'have' : 'has'} the status ${status} (reason: ${reason}).`,
        goesOn
          ? ''
          : 'No new spins, tickets or rounds are dealt. Repeated requests still get their original responses, and open rounds can be finished.',
        'GET /events lists every game whose status has changed.',
      ],
    };
  },
  'webhook.deactivated': ({ webhookId, url, failingSince }, brand) => ({
    subject: `${brand} webhook ${webhookId} is inactive`,
    lines: [
      `Every delivery to ${url} has failed since ${failingSince}. The webhook is now inactive and gets no more events.`,
      `Once the receiver works again, activate the webhook with PATCH /webhooks/${webhookId} {"isActive": true}.`,
      'GET /events lists the events of the last 30 days, with those that were not delivered.',
    ],
  }),
  'settlement.overdue': ({ reportDate, partners }, brand) => ({
    subject: `${brand} settlement for ${reportDate} is overdue`,
    lines: [
      `${partners} ${partners === 1 ? 'partner has' : 'partners have'} no complete settlement report for ${reportDate}.`,
      'The section "SpindleSettlementOverdue" of docs/runbook.md has the steps.',
    ],
  }),
  'program.check_failed': ({ host, version, manifest, differing, paths }, brand) => ({
    subject: `${brand} on ${host}: program files differ from the build`,
    lines: [
      `${differing} ${differing === 1 ? 'file differs' : 'files differ'} from the manifest of the build (version ${version}, manifest ${manifest ?? 'none'}).`,
      [...paths, ...(differing > paths.length ? [`and ${differing - paths.length} more`] : [])].join('\n'),
      'The section "SpindleProgramChanged" of docs/runbook.md has the steps.',
    ],
  }),
};

/** @throws Error if no e-mail is sent for such an event */
export function emailOf(event: string, data: unknown, brand: string): EmailText {
  const template = TEMPLATES[event as EmailedType] as
    | ((data: unknown, brand: string) => { subject: string; lines: string[] })
    | undefined;
  if (template === undefined) throw new Error(`There is no e-mail template for the event ${event}`);
  const { subject, lines } = template(data, brand);
  return { subject, text: `${lines.filter((line) => line !== '').join('\n\n')}\n` };
}
