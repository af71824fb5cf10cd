/**
 * Page of the dealing switches for all games, for partners and for games. Each switch that is off is listed
 * with the button that turns it on.
 */
import { api, bodyOf, type Schemas } from '../api.js';
import { useDealing } from '../dealingState.js';
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
  const loaded = useDealing();
  return (
    <>
      <Load loaded={loaded}>
        {({ state, reason, actor, changedAt }) => (
          <Facts
            of={[
              ['Dealing for all partners', <Status key="state" of={state} />],
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
        label="Dealing for all partners"
        button={isOn ? 'Stop dealing for all' : 'Resume dealing for all'}
        isDangerous
        confirm={{
          title: isOn ? 'Stop dealing for all partners?' : 'Resume dealing for all partners?',
          consequence: isOn
            ? 'Within a second all spins, tickets and deals of all partners are refused, until you resume dealing. Open rounds can be finished.'
            : 'All games can be played again, except suspended games and games of partners whose dealing is off.',
          button: isOn ? 'Stop dealing' : 'Resume dealing',
          isDangerous: true,
          asksReason: true,
          ...(isOn ? { typed: 'all partners' } : {}),
        }}
        act={async ({ reason }) => {
          await bodyOf(api.PUT('/dealing', { body: { state: other(state), reason: reason! } }));
          onChanged();
          return isOn ? 'Dealing is off.' : 'Dealing is on.';
        }}
      />
    </DangerZone>
  );
}

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
      button={isOn ? 'Stop dealing' : 'Resume dealing'}
      isInline
      isDangerous={isOn}
      confirm={{
        title: isOn ? `Stop dealing for ${name}?` : `Resume dealing for ${name}?`,
        consequence: isOn
          ? "Within a second the partner's spins, tickets and deals are refused. Its other requests and its open rounds continue."
          : "The partner's games can be played again.",
        button: isOn ? 'Stop dealing' : 'Resume dealing',
        isDangerous: isOn,
        asksReason: true,
      }}
      act={async ({ reason }) => {
        const params = { path: { id: partnerId } };
        const body = { dealing: other(dealing), reason: reason! };
        await bodyOf(api.PATCH('/partners/{id}', { params, body }));
        onChanged();
        return isOn ? 'Dealing is off for this partner.' : 'Dealing is on for this partner.';
      }}
    />
  );
}

function StoppedPartners() {
  // The partners are loaded here, because the list of partner names is refreshed only once a minute.
  const loaded = useLoad(() => bodyOf(api.GET('/partners', {})), []);
  const mayChange = useMayChange();
  return (
    <Panel title="Partners with dealing off">
      <Load loaded={loaded}>
        {({ partners }) => (
          <Table
            caption="Partners with dealing off"
            rows={partners.filter(({ dealing }) => dealing === 'OFF')}
            keyOf={({ partnerId }) => partnerId}
            empty="None. To stop dealing for a partner, use the end of its page."
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
    <Panel title="Suspended games">
      <Load loaded={loaded}>
        {({ games, total }) => (
          <>
            <Table
              caption="Suspended games"
              rows={games.filter(({ status }) => status === 'SUSPENDED')}
              keyOf={({ gameConfigId }) => gameConfigId}
              empty="None. To suspend a game, use the end of its page."
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
