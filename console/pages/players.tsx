/** Pages of players: a statement with all entries, adjustments and blocking. */
import { useEffect, useState } from 'preact/hooks';
import { namedPlayer } from '../../clients/typescript/src/playerNames.js';
import { ENTRIES } from '../../src/api/client/views/players.js';
import { api, bodyOf, type Schemas } from '../api.js';
import type { Question } from '../dialog.js';
import { Field, Form } from '../form.js';
import { NONE, time, usd } from '../format.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import { GameLink, PartnerField, PartnerLink, useGameNames, usePartnerOf } from '../names.js';
import { go, linkTo, type Place } from '../router.js';
import { useMayBlock, useMayChange } from '../session.js';
import { columnsOf, Table } from '../table.js';
import { Facts, Fault, Load, Panel, Status, statusFacts } from '../ui.js';
import { RecallPanel } from './recall.js';

type Statement = Schemas['Statement'];
type Entry = Schemas['StatementEntry'];

const LIMIT = 50;

export function Players() {
  const partnerOf = usePartnerOf();
  return (
    <Form
      label="Find a player"
      button="Show statement"
      act={async ({ partner, playerId }) => {
        go(['players', partnerOf(partner!), playerId!]);
        return null;
      }}
    >
      <PartnerField />
      <Field label="Player" name="playerId" required hint="Player id, as the partner sends it" />
    </Form>
  );
}

/** Range of a statement, in minutes of UTC such as 2026-11-27T10:00; an empty end does not restrict it. */
interface Range {
  readonly from: string;
  readonly to: string;
}

function read(id: number, playerId: string, { from, to }: Range, cursor?: string): Promise<Statement> {
  const { inPath, inQuery } = namedPlayer(playerId);
  const query = {
    limit: LIMIT,
    ...(cursor === undefined ? {} : { cursor }),
    ...(from === '' ? {} : { from: `${from}:00Z` }),
    ...(to === '' ? {} : { to: `${to}:00Z` }),
    ...inQuery,
  };
  // The response body is JSON, because the request did not ask for CSV.
  return bodyOf(
    api.GET('/partners/{id}/players/{playerId}/statement', { params: { path: { id, ...inPath }, query } }),
  ) as Promise<Statement>;
}

export function PlayerStatement({ place }: { readonly place: Place }) {
  const id = Number(place.parts[1]);
  const playerId = place.parts[2] ?? '';
  const range = { from: place.query.get('from') ?? '', to: place.query.get('to') ?? '' };
  const loaded = useLoad(() => read(id, playerId, range), [id, playerId, range.from, range.to]);
  return (
    <Load loaded={loaded}>
      {(statement) => (
        <>
          <Changes statement={statement} onChanged={loaded.reload} />
          <Facts
            of={[
              ['Partner', <PartnerLink key="partner" id={id} />],
              ['Status', <Status key="status" of={statement.status} />],
              ...statusFacts(
                statement.statusChange,
                statement.statusChange?.status === 'BLOCKED' ? 'Blocked' : 'Unblocked',
                { subject: `player:${id}:${playerId}`, action: 'player.status' },
              ),
              ['Balance', usd(statement.balanceUsd)],
              ['Player since (UTC)', time(statement.createdAt)],
            ]}
          />
          <RecallPanel id={id} playerId={playerId} />
          <Entries statement={statement} range={range} />
        </>
      )}
    </Load>
  );
}

function Entries({ statement, range }: { readonly statement: Statement; readonly range: Range }) {
  const [more, setMore] = useState<{ entries: Entry[]; nextCursor: string | null } | undefined>();
  const [error, setError] = useState<unknown>();
  // When another statement is shown, the list of entries returns to its first page.
  useEffect(() => setMore(undefined), [statement]);
  const gameNameOf = useGameNames(statement.partnerId);
  const { entries, nextCursor } = more ?? statement;
  const load = async (): Promise<void> => {
    try {
      const next = await read(statement.partnerId, statement.playerId, range, nextCursor!);
      setMore({ entries: [...entries, ...next.entries], nextCursor: next.nextCursor });
    } catch (fault) {
      setError(fault);
    }
  };
  return (
    <Panel title="Statement">
      <Form
        label="Time of the statement"
        button="Show this time"
        keepsValues
        act={async ({ from, to }) => {
          go(['players', statement.partnerId, statement.playerId], { from: from!, to: to! });
          return null;
        }}
      >
        <Field label="From (UTC)" name="from" type="datetime-local" value={range.from} />
        <Field label="Up to (UTC)" name="to" type="datetime-local" value={range.to} />
      </Form>
      <Table
        caption="Entries, newest first"
        file={`statement-${statement.playerId}`}
        isPage={nextCursor !== null}
        rows={entries}
        keyOf={({ entryId }) => entryId}
        empty={
          range.from === '' && range.to === ''
            ? 'No entries. The first spin or adjustment of the player appears here.'
            : 'No entries in this time.'
        }
        columns={columnsOf(ENTRIES, {
          Game: {
            cell: ({ gameId }) =>
              gameId === null ? NONE : <GameLink id={gameId}>{gameNameOf(gameId)}</GameLink>,
            isNumber: false,
          },
          Spin: {
            cell: ({ spinId }) =>
              spinId === null ? NONE : <a href={linkTo(['lookup'], { id: spinId })}>{spinId.slice(0, 8)}…</a>,
            value: ({ spinId }) => spinId,
          },
        })}
      />
      {nextCursor === null ? null : (
        <button type="button" onClick={load}>
          Earlier entries
        </button>
      )}
      <Fault error={error} />
    </Panel>
  );
}

/** Amount in USD above which an adjustment, positive or negative, needs two confirmations. */
const ASKED_TWICE_ABOVE_USD = 1000;

function adjustmentQuestions(playerId: string, amountUsd: number): Question[] {
  const what = amountUsd < 0 ? `Take ${usd(-amountUsd)} from` : `Give ${usd(amountUsd)} to`;
  const question: Question = {
    title: `${what} ${playerId}?`,
    consequence:
      'The adjustment takes effect at once and stays in the statement. Only another adjustment can reverse it.',
    button: 'Adjust',
    isDangerous: true,
  };
  if (Math.abs(amountUsd) <= ASKED_TWICE_ABOVE_USD) return [question];
  const large: Question = {
    title: `${usd(Math.abs(amountUsd))} is more than ${usd(ASKED_TWICE_ABOVE_USD)}`,
    consequence: 'Adjustments are rarely this large. Check the amount and the player.',
    button: 'The amount is correct',
    isDangerous: true,
  };
  return [large, { ...question, typed: playerId }];
}

function Changes({
  statement,
  onChanged,
}: {
  readonly statement: Statement;
  readonly onChanged: () => void;
}) {
  // The request id is kept until the adjustment is made. If the answer is lost and the form is sent again,
  // the adjustment still takes effect only once.
  const [requestId, setRequestId] = useState(() => crypto.randomUUID());
  const mayAdjust = useMayChange();
  if (!useMayBlock()) return null;
  const { partnerId: id, playerId, status } = statement;
  const { inPath, inQuery: query } = namedPlayer(playerId);
  const params = { path: { id, ...inPath }, query };
  const isBlocked = status === 'BLOCKED';
  return (
    <Toolbar>
      {mayAdjust ? (
        <FormDialog title="Adjust the balance">
          <Form
            label="Adjustment"
            button="Adjust"
            isDangerous
            confirm={({ amountUsd }) => adjustmentQuestions(playerId, Number(amountUsd))}
            act={async ({ amountUsd, reason }) => {
              const body = { amountUsd: Number(amountUsd), reason: reason!, requestId };
              const path = '/partners/{id}/players/{playerId}/adjustments';
              const { balanceUsd } = await bodyOf(api.POST(path, { params, body }));
              setRequestId(crypto.randomUUID());
              onChanged();
              return `The balance is ${usd(balanceUsd)}.`;
            }}
          >
            <Field
              label="Amount in USD"
              name="amountUsd"
              type="number"
              required
              hint="A negative amount reduces the balance"
            />
            <Field label="Reason" name="reason" required hint="Kept in the audit log" />
          </Form>
        </FormDialog>
      ) : null}
      <FormDialog title={isBlocked ? 'Unblock the player' : 'Block the player'} isDangerous={!isBlocked}>
        <Form
          label="Status"
          button={isBlocked ? 'Unblock' : 'Block'}
          isDangerous={!isBlocked}
          confirm={{
            title: isBlocked ? `Unblock ${playerId}?` : `Block ${playerId}?`,
            consequence: isBlocked
              ? 'The player may play again.'
              : 'All plays of this player are refused until you unblock the player. The balance does not change.',
            button: isBlocked ? 'Unblock' : 'Block',
            isDangerous: !isBlocked,
          }}
          act={async ({ reason }) => {
            const body = { status: isBlocked ? 'ACTIVE' : 'BLOCKED', reason: reason! } as const;
            const call = api.PATCH('/partners/{id}/players/{playerId}', { params, body });
            const { isInForce } = await bodyOf(call);
            onChanged();
            if (!isInForce)
              return 'Recorded, but not in force yet, because Redis did not answer. It comes into force as soon as Redis accepts it.';
            return isBlocked ? 'The player can play.' : 'The player is blocked.';
          }}
        >
          <Field label="Reason" name="reason" required hint="Kept in the audit log" />
        </Form>
      </FormDialog>
    </Toolbar>
  );
}
