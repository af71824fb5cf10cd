/**
 * Page of the dealing switches for all games, for partners and for games. Each switch that is off is listed
 * with the button that turns it on.
 */
import { api, bodyOf, type Schemas } from '../api.js';
import { Form } from '../form.js';
import { NONE, time } from '../format.js';
import { useLoad } from '../load.js';
import { GAME_COLUMN, PartnerLink, usePartnerColumn } from '../names.js';
import { linkTo } from '../router.js';
import { useMayChange } from '../session.js';
import { Table } from '../table.js';
import { DangerZone, Facts, Load, Panel, Status } from '../ui.js';

type State = Schemas['DealingResponse']['state'];
type Partner = Schemas['PartnerResponse'];

const other = (state: State): State => (state === 'ON' ? 'OFF' : 'ON');

/** Number of suspended games that are loaded. More games are rarely suspended at the same time. */
const GAMES_READ = 100;

export function Dealing() {
  const loaded = useLoad(() => bodyOf(api.GET('/dealing', {})), []);
  return (
    <>
      <Load loaded={loaded}>
        {({ state, reason, actor, changedAt }) => (
          <Facts
            of={[
              ['Dealing, for all', <Status key="state" of={state} />],
              ['Since (UTC)', time(changedAt)],
              ['By', actor ?? NONE],
              ['Reason', reason ?? NONE],
            ]}
          />
        )}
      </Load>
      <StoppedPartners />
      <SuspendedGames />
      <Load loaded={loaded}>{({ state }) => <ForAll state={state} onChanged={loaded.reload} />}</Load>
    </>
  );
}

function ForAll({ state, onChanged }: { readonly state: State; readonly onChanged: () => void }) {
  if (!useMayChange()) return null;
  const isOn = state === 'ON';
  return (
    <DangerZone>
      <Form
        label="Dealing for all"
        button={isOn ? 'Stop dealing for all' : 'Deal again for all'}
        isDangerous
        confirm={{
          title: isOn ? 'Stop dealing for all partners?' : 'Deal again for all partners?',
          consequence: isOn
            ? 'Every spin, ticket and deal of every partner is refused within a second, until it is switched on again. Rounds that are open can be finished.'
            : 'Everything is played again, but for games that are suspended and partners that are switched off.',
          button: isOn ? 'Stop dealing' : 'Deal again',
          isDangerous: true,
          asksReason: true,
          ...(isOn ? { typed: 'all partners' } : {}),
        }}
        act={async ({ reason }) => {
          await bodyOf(api.PUT('/dealing', { body: { state: other(state), reason: reason! } }));
          onChanged();
          return isOn ? 'Nothing is dealt.' : 'Everything is dealt again.';
        }}
      />
    </DangerZone>
  );
}

/** Switches the dealing for one partner on or off. */
export function PartnerSwitch({
  partner: { partnerId, name, dealing },
  onChanged,
}: {
  readonly partner: Partner;
  readonly onChanged: () => void;
}) {
  const isOn = dealing === 'ON';
  return (
    <Form
      label={`Dealing of ${name}`}
      button={isOn ? 'Stop dealing' : 'Deal again'}
      isInline
      isDangerous={isOn}
      confirm={{
        title: isOn ? `Stop dealing for ${name}?` : `Deal again for ${name}?`,
        consequence: isOn
          ? 'Its spins, tickets and deals are refused within a second. Its other requests, and rounds that are open, go on.'
          : 'Its games are played again.',
        button: isOn ? 'Stop dealing' : 'Deal again',
        isDangerous: isOn,
        asksReason: true,
      }}
      act={async ({ reason }) => {
        const params = { path: { id: partnerId } };
        const body = { dealing: other(dealing), reason: reason! };
        await bodyOf(api.PATCH('/partners/{id}', { params, body }));
        onChanged();
        return isOn ? 'Nothing is dealt for it.' : 'It is dealt for again.';
      }}
    />
  );
}

function StoppedPartners() {
  // The partners are loaded here, because the list of partner names is refreshed only once a minute.
  const loaded = useLoad(() => bodyOf(api.GET('/partners', {})), []);
  const mayChange = useMayChange();
  return (
    <Panel title="Partners that are switched off">
      <Load loaded={loaded}>
        {({ partners }) => (
          <Table
            caption="Partners that are switched off"
            rows={partners.filter(({ dealing }) => dealing === 'OFF')}
            keyOf={({ partnerId }) => partnerId}
            empty="None. A partner is switched off at the end of its page."
            columns={[
              { heading: 'Partner', cell: ({ partnerId }) => <PartnerLink id={partnerId} /> },
              { heading: 'Dealing', cell: ({ dealing }) => <Status of={dealing} /> },
              ...(mayChange
                ? [
                    {
                      heading: 'Change',
                      cell: (partner: Partner) => (
                        <PartnerSwitch partner={partner} onChanged={loaded.reload} />
                      ),
                    },
                  ]
                : []),
            ]}
          />
        )}
      </Load>
    </Panel>
  );
}

function SuspendedGames() {
  const partnerColumn = usePartnerColumn();
  const loaded = useLoad(() => bodyOf(api.GET('/games', { params: { query: { limit: GAMES_READ } } })), []);
  return (
    <Panel title="Games that are suspended">
      <Load loaded={loaded}>
        {({ games, total }) => (
          <>
            <Table
              caption="Games that are suspended"
              rows={games.filter(({ status }) => status === 'SUSPENDED')}
              keyOf={({ gameConfigId }) => gameConfigId}
              empty="None. A game is suspended at the end of its page."
              columns={[
                GAME_COLUMN,
                partnerColumn,
                {
                  heading: 'Why',
                  cell: ({ gameConfigId }) => (
                    <a href={linkTo(['audit'], { subject: `game:${gameConfigId}` })}>Audit log</a>
                  ),
                },
                { heading: 'Status', cell: ({ status }) => <Status of={status} /> },
              ]}
            />
            {total > GAMES_READ ? (
              <p class="note">
                Of the newest {GAMES_READ} games of {total}.
              </p>
            ) : null}
          </>
        )}
      </Load>
    </Panel>
  );
}
