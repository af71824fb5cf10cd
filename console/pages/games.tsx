/** Pages of games: their actual and expected return, the outcomes left in their queues, and suspension. */
import {
  GAMES,
  RESUME_GAME,
  SUSPEND_GAME,
  stateOf,
  VOID_OUTCOMES,
  VOID_RAFFLE,
} from '../../src/api/client/views/games.js';
import { rtpVerdict } from '../../src/domain/rtp.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { Chart } from '../chart.js';
import { ChangeForm, Field, Form } from '../form.js';
import { count, NONE, percent, usd } from '../format.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import {
  GAME_COLUMN,
  PartnerFilter,
  PartnerLink,
  usePartnerColumn,
  usePartnerWanted,
  useTitle,
} from '../names.js';
import type { Place } from '../router.js';
import { useMayChange } from '../session.js';
import { columnsOf, Table } from '../table.js';
import { DangerZone, Facts, Load, Panel, pageOf, Status, statusFacts } from '../ui.js';
import { RtpPanel } from './gameRtp.js';
import { BlocksPanel } from './publicLog.js';

type Game = Schemas['OperatorGame'];

/** Returns whether the game refuses plays because its queue is empty. A raffle is then sold out. */
const isDry = ({ gameType, status, queue }: Game): boolean =>
  gameType !== 'raffle' && status === 'ACTIVE' && queue.outcomesReady === 0;

const EVERY_MS = 5000;
/** Number of standard errors that contain 99 % of the returns after many spins. */
const BAND = 2.576;

/** Number of plays from which the average return of a game without a PAR sheet has a meaning. */
const FEW_PLAYS = 1000;

/** Returns the number of spins from which the actual return can be judged. */
const saysFrom = ({ expected }: Game): number => expected?.normalFromSpins ?? FEW_PLAYS;

const saysSomething = (game: Game, spins: number): boolean => spins > 0 && spins >= saysFrom(game);

const tooFew = (game: Game): string => rtpVerdict('TOO_FEW', saysFrom(game));

/** Returns half the width of the band around the expected return after a number of spins. */
const halfBand = ({ expected }: Game, spins: number): number =>
  expected === null || spins === 0 ? Number.NaN : BAND * Math.sqrt(expected.variancePerSpin / spins);

/** The expected return, with the band that contains 99 of 100 returns if the actual return can be judged. */
const bandText = (game: Game): string => {
  if (game.expected === null) return NONE;
  if (!saysSomething(game, game.totals.spins)) return percent(game.expected.rtp);
  return `${percent(game.expected.rtp)} ± ${(100 * halfBand(game, game.totals.spins)).toFixed(2)}`;
};

/** The expected return. What the actual return lacks to be judged stands below it. */
const Band = ({ game }: { readonly game: Game }) => (
  <>
    {bandText(game)}
    {game.expected === null || saysSomething(game, game.totals.spins) ? null : <small>{tooFew(game)}</small>}
  </>
);

const seen = new Map<number, { atMs: number; consumed: number }>();

/**
 * Returns the time until the queue is empty, in minutes, at the rate since the page first loaded the game.
 */
function minutesLeft({ gameConfigId, queue }: Game): string {
  const first = seen.get(gameConfigId);
  if (first === undefined) {
    seen.set(gameConfigId, { atMs: Date.now(), consumed: queue.consumed });
    return NONE;
  }
  const minutes = (Date.now() - first.atMs) / 60_000;
  const pace = (queue.consumed - first.consumed) / minutes;
  return pace <= 0 ? NONE : `${Math.round(queue.outcomesReady / pace)} min`;
}

export function Games({ place }: { readonly place: Place }) {
  const partnerColumn = usePartnerColumn();
  const page = pageOf(place);
  const partnerId = usePartnerWanted(place);
  const query = { page, limit: 20, ...(partnerId === undefined ? {} : { partnerId }) };
  const loaded = useLoad(() => bodyOf(api.GET('/games', { params: { query } })), [query], EVERY_MS);
  return (
    <>
      <PartnerFilter place={place} />
      <Load loaded={loaded}>
        {({ games, limit, total }) => (
          <Table
            caption="Games, newest first"
            rows={games}
            pages={{ place, limit, total }}
            keyOf={({ gameConfigId }) => gameConfigId}
            empty="There are no games yet. A partner registers a slot game with its PAR sheet by the API; create raffles and tables on their pages."
            columns={[
              ...columnsOf(GAMES, {
                Game: GAME_COLUMN,
                Partner: partnerColumn,
                Expected: { cell: (game) => <Band game={game} />, value: bandText },
                Queue: {
                  cell: (game) => (isDry(game) ? <Status of="none" /> : count(game.queue.outcomesReady)),
                  value: ({ queue }) => queue.outcomesReady,
                },
              }),
              { heading: 'Lasts', cell: minutesLeft, isNumber: true },
            ]}
          />
        )}
      </Load>
    </>
  );
}

export function GameDetail({ place }: { readonly place: Place }) {
  const id = Number(place.parts[1]);
  const params = { path: { id } };
  const loaded = useLoad(() => bodyOf(api.GET('/games/{id}', { params })), [id], EVERY_MS);
  useTitle(loaded.data?.displayName);
  const days = useLoad(
    () => bodyOf(api.GET('/games/{id}/days', { params: { ...params, query: { limit: 400 } } })),
    [id],
  );
  return (
    <Load loaded={loaded}>
      {(game) => (
        <>
          <MoreBlocks game={game} />
          <GameFacts game={game} />
          {game.gameType === 'slot' ? <RtpPanel gameId={id} /> : null}
          <Panel title="Return">
            <Load loaded={days}>{(list) => <Return game={game} days={list.days} />}</Load>
          </Panel>
          <BlocksPanel place={place} gameId={id} />
          <Suspension game={game} onChanged={loaded.reload} />
        </>
      )}
    </Load>
  );
}

/** What the status change of a game was. */
const verbOf = ({ status, statusReason }: Game): string =>
  statusReason === 'VOIDED' ? 'Voided' : status === 'SUSPENDED' ? 'Suspended' : 'Resumed';

/** The refunds of a voided raffle, beside the revenue that its tickets are part of. */
const refundFacts = ({ refunds, totals }: Schemas['GameDetail']): (readonly [string, string])[] => {
  if (refunds === null) return [];
  const { tickets, refunded, failed, refundedUsd, isDone } = refunds;
  const revenueUsd = totals.wageredUsd - totals.paidOutUsd;
  return [
    ['Refunded', usd(refundedUsd)],
    [
      'Tickets refunded',
      `${count(refunded)} of ${count(tickets)}${failed === 0 ? '' : `, ${count(failed)} failed`}${isDone ? ', done' : ''}`,
    ],
    ['Revenue after refunds', usd(revenueUsd - refundedUsd)],
  ];
};

const GameFacts = ({ game }: { readonly game: Schemas['GameDetail'] }) => (
  <Facts
    of={[
      ['System name', <code key="name">{game.configName}</code>],
      ['Partner', <PartnerLink key="partner" id={game.partnerId} />],
      ['Kind', game.gameType],
      ['Status', <Status key="status" of={stateOf(game)} />],
      ...(game.statusReason === 'RESTORED' ? ([['Why', 'RESTORED']] as const) : []),
      ...statusFacts(game.statusChange, verbOf(game), {
        subject: `game:${game.gameConfigId}`,
        action: game.statusReason === 'VOIDED' ? 'raffle.void' : 'game.update',
      }),
      ['Wager', usd(game.minWagerUsd)],
      ['Spins', count(game.totals.spins)],
      ['Wagered', usd(game.totals.wageredUsd)],
      ['Paid', usd(game.totals.paidOutUsd)],
      ['Gross revenue', usd(game.totals.wageredUsd - game.totals.paidOutUsd)],
      ...refundFacts(game),
      ['Return', percent(game.totals.actualRtp, 3)],
      ['Expected, 99 of 100', <Band key="expected" game={game} />],
      ['Outcomes ready', isDry(game) ? <Status key="ready" of="none" /> : count(game.queue.outcomesReady)],
      ['Blocks ready', count(game.queue.readyBlocks)],
      ['Queue lasts', minutesLeft(game)],
      ...(game.poolSize === undefined
        ? []
        : ([
            ['Tickets left', `${count(game.ticketsRemaining)} of ${count(game.poolSize)}`],
            ['Commitment', <code key="commitment">{game.poolCommitment ?? 'not sealed yet'}</code>],
          ] as const)),
    ]}
  />
);

/** Form that creates more outcomes of a slot than its reserve requires. */
function MoreBlocks({ game }: { readonly game: Game }) {
  const mayChange = useMayChange();
  if (!mayChange || game.gameType !== 'slot') return null;
  const params = { path: { id: game.gameConfigId } };
  return (
    <Toolbar>
      <FormDialog title="Make more outcomes">
        <Form
          label="Blocks"
          button="Make blocks"
          act={async ({ count: blocks }) => {
            await bodyOf(api.POST('/games/{id}/blocks', { params, body: { count: Number(blocks) } }));
            return 'Blocks requested.';
          }}
        >
          <Field label="Blocks to make in addition" name="count" type="number" value={1} required />
        </Form>
      </FormDialog>
    </Toolbar>
  );
}

function Suspension({ game, onChanged }: { readonly game: Game; readonly onChanged: () => void }) {
  if (!useMayChange() || game.status === 'CLOSED') return null;
  const { gameConfigId: id, gameType, displayName: name, status } = game;
  const of = { name, path: { id }, typed: name, onDone: onChanged };
  return (
    <DangerZone>
      <ChangeForm
        change={status === 'SUSPENDED' ? RESUME_GAME : SUSPEND_GAME}
        {...{ name, path: { id }, onDone: onChanged }}
      />
      {gameType === 'slot' ? <ChangeForm change={VOID_OUTCOMES} {...of} /> : null}
      {gameType === 'raffle' ? <ChangeForm change={VOID_RAFFLE} {...of} /> : null}
    </DangerZone>
  );
}

interface DayEnd {
  readonly day: Schemas['GameDay'];
  /** Number of spins of the game since its first day. */
  readonly spins: number;
  readonly actual: number | null;
}

/**
 * Returns the totals of a game at the end of each day, oldest first.
 *
 * @param days days, newest first
 */
function dayEnds(days: readonly Schemas['GameDay'][]): DayEnd[] {
  let spins = 0;
  let wageredUsd = 0;
  let paidOutUsd = 0;
  return [...days].reverse().map((day) => {
    spins += day.spins;
    wageredUsd += day.wageredUsd;
    paidOutUsd += day.paidOutUsd;
    return { day, spins, actual: wageredUsd === 0 ? null : paidOutUsd / wageredUsd };
  });
}

/** Number of points at which the band is drawn between zero and the last number of spins. */
const BAND_POINTS = 60;

/** Chart of the return by number of spins, with the band that narrows as the spins increase. */
function ReturnChart({ game, ends }: { readonly game: Game; readonly ends: readonly DayEnd[] }) {
  const last = ends.at(-1)!;
  if (!saysSomething(game, last.spins)) {
    return (
      <p class="empty">
        {tooFew(game)}. It has {count(last.spins)}; the table has the figures.
      </p>
    );
  }
  // Nothing is drawn for so few spins that the return can't be judged.
  const from = (spins: number): boolean => saysSomething(game, spins);
  const even = Array.from({ length: BAND_POINTS }, (_, i) => Math.ceil((last.spins * (i + 1)) / BAND_POINTS));
  const places = [...new Set([...even, ...ends.map(({ spins }) => spins)])]
    .filter(from)
    .sort((x, y) => x - y);
  const actual = new Map(ends.map((end) => [end.spins, end.actual]));
  const edge = (sign: 1 | -1) => (spins: number) =>
    game.expected === null ? null : Math.max(0, game.expected.rtp + sign * halfBand(game, spins));
  const low = places.map(edge(-1));
  const high = places.map(edge(1));
  return (
    <Chart
      title="Return by number of spins"
      label={`Return by spins, ${percent(last.actual)} after ${count(last.spins)} spins${game.expected === null ? '' : `; the 99 % band is ${percent(low.at(-1))} to ${percent(high.at(-1))}`}.`}
      places={places}
      isTime={false}
      series={[
        ...(game.expected === null
          ? []
          : ([
              { label: 'Lowest expected', values: low, kind: 'edge' },
              { label: 'Highest expected', values: high, kind: 'edge' },
            ] as const)),
        {
          label: 'Return by number of spins',
          values: places.map((spins) => actual.get(spins) ?? null),
          kind: 'line',
        },
      ]}
      format={(value) => percent(value, 0)}
    />
  );
}

const DAY_SECONDS = 86_400;

/** Chart of the remaining tickets of a raffle at the end of each day, and now. */
function TicketsLeft({ game, ends }: { readonly game: Game; readonly ends: readonly DayEnd[] }) {
  const { poolSize = 0, ticketsRemaining = 0 } = game;
  const startOf = ({ day }: DayEnd): number => Date.parse(`${day.day}T00:00:00Z`) / 1000;
  const nowSeconds = Math.floor(Date.now() / 1000);
  // The newest day may not have ended yet, so the current time limits the end of a day.
  const endOf = (end: DayEnd): number => Math.min(startOf(end) + DAY_SECONDS, nowSeconds);
  const places = [startOf(ends[0]!), ...ends.map(endOf)];
  return (
    <Chart
      title="Tickets left"
      label={`Tickets left by time: ${count(ticketsRemaining)} of ${count(poolSize)} now.`}
      places={places}
      isTime
      series={[
        {
          label: 'Tickets left',
          values: [poolSize, ...ends.map(({ spins }) => poolSize - spins)],
          kind: 'line',
        },
      ]}
      format={count}
      isFromZero
    />
  );
}

function Return({ game, days }: { readonly game: Game; readonly days: readonly Schemas['GameDay'][] }) {
  const points = dayEnds(days);
  if (points.length === 0)
    return <p class="empty">No plays yet. The first spin of the game starts this chart.</p>;
  return (
    <>
      {/* The return of a sold-out raffle is fixed. Before that it only depends on the order of the tickets. */}
      {game.poolSize === undefined ? (
        <ReturnChart game={game} ends={points} />
      ) : (
        <TicketsLeft game={game} ends={points} />
      )}
      <h3>Days</h3>
      <Table
        caption="Days, newest first"
        rows={[...points].reverse()}
        keyOf={({ day }) => day.day}
        empty=""
        columns={[
          { heading: 'Day (UTC)', cell: ({ day }) => day.day },
          { heading: 'Spins', cell: ({ day }) => count(day.spins), isNumber: true },
          { heading: 'Wagered', cell: ({ day }) => usd(day.wageredUsd), isNumber: true },
          { heading: 'Paid', cell: ({ day }) => usd(day.paidOutUsd), isNumber: true },
          {
            heading: 'Return of the day',
            cell: ({ day }) => percent(day.paidOutUsd / day.wageredUsd),
            isNumber: true,
          },
          { heading: 'Return so far', cell: ({ actual }) => percent(actual), isNumber: true },
        ]}
      />
    </>
  );
}
