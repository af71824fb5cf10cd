/** `spindle review`: lists and shows the reviews of returns to player, adds notes, and closes reviews. */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { oneOf, whole } from '../command.js';
import { withYes } from '../confirm.js';
import { keyValues, type TableColumn, table } from '../output.js';
import { type Call, type OperatorCommands, pageLine, pageOf, type Schemas, withPages } from './call.js';
import { gameIdOf } from './names.js';

type Review = Schemas['RtpReview'];

const COLUMNS: readonly TableColumn<Review>[] = [
  { heading: 'id', value: (row) => row.reviewId, kind: 'number' },
  { heading: 'game', value: (row) => row.gameConfigId, kind: 'number' },
  { heading: 'window', value: (row) => row.window },
  { heading: 'opened', value: (row) => row.openedAt },
  { heading: 'status', value: (row) => row.status },
  { heading: 'finding', value: (row) => row.finding },
  { heading: 'closed by', value: (row) => row.closedBy },
  { heading: 'notes', value: (row) => row.notes.length, kind: 'number' },
];
const RECORDS: readonly TableColumn<Schemas['RtpRecord']>[] = [
  { heading: 'day', value: (row) => row.day },
  { heading: 'window', value: (row) => row.window },
  { heading: 'spins', value: (row) => row.spins, kind: 'number' },
  { heading: 'wagered USD', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'paid USD', value: (row) => row.paidOutUsd, kind: 'usd' },
  { heading: 'z', value: (row) => row.z, kind: 'number' },
  { heading: 'nats', value: (row) => row.nats, kind: 'number' },
  { heading: 'state', value: (row) => row.state },
];
const NOTES: readonly TableColumn<Schemas['RtpReviewNote']>[] = [
  { heading: 'at', value: (row) => row.at },
  { heading: 'by', value: (row) => row.by },
  { heading: 'note', value: (row) => row.text },
];

const FINDINGS = { chance: 'CHANCE', 'game-error': 'GAME_ERROR', 'data-error': 'DATA_ERROR' } as const;
type Finding = (typeof FINDINGS)[keyof typeof FINDINGS];

export function addReviewCommands(commands: OperatorCommands): void {
  const group = commands.group('review', 'reviews of returns to player');
  withPages(commands.add('list', 'list the reviews, newest first', list, group), 'reviews')
    .addOption(new Option('--status <STATUS>', 'only reviews with this status').choices(['open', 'closed']))
    .option('--game <GAME>', 'only reviews of this game');
  commands.add('show <REVIEW_ID>', 'show a review with its notes and judgements', show, group);
  commands
    .add('note <REVIEW_ID>', 'add a note to a review', addNote, group)
    .requiredOption('--text <TEXT>', 'result of the investigation, or action taken');
  withYes(commands.add('close <REVIEW_ID>', 'close a review permanently with its finding', close, group))
    .addOption(
      new Option('--finding <FINDING>', 'conclusion: chance, game-error or data-error')
        .argParser(oneOf(FINDINGS))
        .makeOptionMandatory(),
    )
    .requiredOption('--text <TEXT>', 'last note of the review, which explains the finding')
    .addHelpText(
      'after',
      `
Examples:
  spindle review list --status open
  spindle review note 12 --text 'asked the supplier for the sheet'
  spindle review close 12 --finding chance --text 'one jackpot accounts for it'`,
    );
}

async function list(call: Call): Promise<void> {
  const { client, options, print } = call;
  const { status, game } = options as { status?: string; game?: string };
  const query = {
    ...pageOf(call),
    ...(status === undefined ? {} : { status: status.toUpperCase() }),
    ...(game === undefined ? {} : { gameId: await gameIdOf(client, game) }),
  };
  print(
    await bodyOf(client.GET('/rtp-reviews', { params: { query } })),
    (body) => table(COLUMNS, body.reviews) + pageLine(body, 'reviews'),
  );
}

const reviewLines = ({ notes, records, ...review }: Review): string =>
  keyValues(review) + table(RECORDS, records) + table(NOTES, notes);

const pathOf = ({ words }: Call) => ({ path: { id: whole(words[0], 'REVIEW_ID') } });

async function show(call: Call): Promise<void> {
  call.print(await bodyOf(call.client.GET('/rtp-reviews/{id}', { params: pathOf(call) })), reviewLines);
}

async function addNote(call: Call): Promise<void> {
  const body = { text: String(call.options.text) };
  const added = call.client.POST('/rtp-reviews/{id}/notes', { params: pathOf(call), body });
  call.print(await bodyOf(added), reviewLines);
}

async function close(call: Call): Promise<void> {
  const { client, options, print, confirm } = call;
  const params = pathOf(call);
  const finding = options.finding as Finding;
  await confirm(
    `This will close review ${params.path.id} permanently with the finding ${finding}. The next judgement outside the band opens a new review.`,
  );
  const body = { finding, text: String(options.text) };
  print(await bodyOf(client.POST('/rtp-reviews/{id}/close', { params, body })), reviewLines);
}
