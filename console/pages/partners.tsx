/** Partners: settings, keys, games, what is left of their funding. */
import { api, bodyOf, type Schemas } from '../api.js';
import { count, NONE, percent, time, usd } from '../format.js';
import { useLoad } from '../load.js';
import { go, linkTo, type Place } from '../router.js';
import { useMayChange } from '../session.js';
import { Facts, Field, Form, Load, Panel, Secret, Status, Table } from '../ui.js';

type Partner = Schemas['PartnerResponse'];

export function Partners() {
  const mayChange = useMayChange();
  const loaded = useLoad(() => bodyOf(api.GET('/partners', {})), []);
  const create = async ({ slug, name, environment }: Record<string, string>) => {
    const body = { slug: slug!, name: name!, environment: environment as Partner['environment'] };
    const { partnerId } = await bodyOf(api.POST('/partners', { body }));
    go(['partners', partnerId]);
    return 'Made.';
  };
  return (
    <>
      <Load loaded={loaded}>
        {({ partners }) => (
          <Table
            caption="Partners"
            rows={partners}
            keyOf={({ partnerId }) => partnerId}
            empty="There is no partner yet."
            columns={[
              { heading: 'Id', cell: ({ partnerId }) => partnerId, isNumber: true },
              {
                heading: 'Slug',
                cell: ({ partnerId, slug }) => <a href={linkTo(['partners', partnerId])}>{slug}</a>,
              },
              { heading: 'Name', cell: ({ name }) => name },
              { heading: 'Environment', cell: ({ environment }) => environment },
              {
                heading: 'Status',
                cell: ({ isActive }) => <Status of={isActive ? 'active' : 'inactive'} />,
              },
              { heading: 'Spins a minute', cell: (row) => count(row.spinRateLimit), isNumber: true },
              { heading: 'Funding', cell: ({ fundingUsd }) => usd(fundingUsd), isNumber: true },
            ]}
          />
        )}
      </Load>
      {mayChange ? (
        <Panel title="New partner">
          <Form label="New partner" button="Create partner" act={create}>
            <Field label="Slug" name="slug" required hint="Lowercase letters, digits and hyphens" />
            <Field label="Name" name="name" required />
            <Field label="Environment" name="environment" options={['sandbox', 'production']} />
          </Form>
        </Panel>
      ) : null}
    </>
  );
}

export function PartnerDetail({ place }: { readonly place: Place }) {
  const id = Number(place.parts[1]);
  const params = { path: { id } };
  const loaded = useLoad(() => bodyOf(api.GET('/partners/{id}', { params })), [id]);
  const games = useLoad(
    () => bodyOf(api.GET('/games', { params: { query: { partnerId: id, limit: 100 } } })),
    [id],
  );
  return (
    <Load loaded={loaded}>
      {(partner) => (
        <>
          <PartnerFacts partner={partner} games={games.data?.games} />
          <Settings partner={partner} onChanged={loaded.reload} />
          <Keys id={id} isActive={partner.isActive} />
          <Panel title="Games">
            <Load loaded={games}>{(list) => <PartnerGames games={list.games} />}</Load>
            <p>
              <a href={linkTo(['raffles'], { partner: String(id) })}>Make a raffle</a>
            </p>
          </Panel>
          <Hooks id={id} />
          <p>
            <a href={linkTo(['audit'], { subject: `partner:${id}` })}>Changes in the audit log</a>
          </p>
        </>
      )}
    </Load>
  );
}

function PartnerFacts({
  partner,
  games,
}: {
  readonly partner: Partner;
  readonly games: readonly Schemas['OperatorGame'][] | undefined;
}) {
  const net = games?.reduce((sum, { totals }) => sum + totals.wageredUsd - totals.paidOutUsd, 0);
  const left = partner.fundingUsd === null || net === undefined ? null : partner.fundingUsd + net;
  return (
    <Facts
      of={[
        ['Slug', partner.slug],
        ['Name', partner.name],
        ['Environment', partner.environment],
        ['Status', <Status key="status" of={partner.isActive ? 'active' : 'inactive'} />],
        ['Spins a minute', count(partner.spinRateLimit)],
        ['Other requests a minute', count(partner.apiRateLimit)],
        ['Balances', partner.balanceMode],
        ['Funding', partner.fundingUsd === null ? 'no bound' : usd(partner.fundingUsd)],
        ['Funding left', partner.fundingUsd === null ? NONE : usd(left)],
        ['Large win above', usd(partner.largeWinThresholdUsd)],
        ['Games, sheets, webhooks', `${partner.maxGames}, ${partner.maxParSheets}, ${partner.maxWebhooks}`],
        ['Created (UTC)', time(partner.createdAt)],
      ]}
    />
  );
}

const LIMITS = [
  ['spinRateLimit', 'Spins a minute'],
  ['apiRateLimit', 'Other requests a minute'],
  ['fundingUsd', 'Funding in USD; empty: no bound'],
  ['largeWinThresholdUsd', 'Large win above, USD'],
] as const;

function Settings({ partner, onChanged }: { readonly partner: Partner; readonly onChanged: () => void }) {
  const params = { path: { id: partner.partnerId } };
  const change = async (body: Schemas['PartnerPatch']): Promise<string> => {
    await bodyOf(api.PATCH('/partners/{id}', { params, body }));
    onChanged();
    return 'Changed.';
  };
  if (!useMayChange()) return null;
  const numbers = (values: Record<string, string>): Schemas['PartnerPatch'] =>
    Object.fromEntries(
      LIMITS.map(([name]) => [name, values[name] === '' ? null : Number(values[name])] as const).filter(
        ([name, value]) => value !== partner[name],
      ),
    );
  return (
    <Panel title="Settings">
      <Form label="Settings" button="Change" keepsValues act={(values) => change(numbers(values))}>
        {LIMITS.map(([name, label]) => (
          <Field key={name} label={label} name={name} type="number" value={partner[name] ?? ''} />
        ))}
      </Form>
      <Form
        label="Activity"
        button={partner.isActive ? 'Deactivate the partner' : 'Activate the partner'}
        confirm={partner.isActive ? `Refuse all keys of ${partner.slug}?` : `Let ${partner.slug} go on?`}
        act={() => change({ isActive: !partner.isActive })}
      />
    </Panel>
  );
}

function Keys({ id, isActive }: { readonly id: number; readonly isActive: boolean }) {
  const mayChange = useMayChange();
  const params = { path: { id } };
  const loaded = useLoad(() => bodyOf(api.GET('/partners/{id}/keys', { params })), [id]);
  const issue = async ({ name }: Record<string, string>) => {
    const body = name === '' ? {} : { name: name! };
    const { apiKey } = await bodyOf(api.POST('/partners/{id}/keys', { params, body }));
    loaded.reload();
    return <Secret label="Key" value={apiKey} />;
  };
  const revoke = (keyId: number) => (
    <Form
      label={`Revoke key ${keyId}`}
      button="Revoke"
      isInline
      confirm={`Revoke key ${keyId} for good?`}
      act={async () => {
        const path = { id, keyId };
        await bodyOf(api.DELETE('/partners/{id}/keys/{keyId}', { params: { path } }));
        loaded.reload();
        return 'Revoked.';
      }}
    />
  );
  return (
    <Panel title="API keys">
      <Load loaded={loaded}>
        {({ keys }) => (
          <Table
            caption="API keys"
            rows={keys}
            keyOf={({ keyId }) => keyId}
            empty="No key was issued yet."
            columns={[
              { heading: 'Id', cell: ({ keyId }) => keyId, isNumber: true },
              { heading: 'Name', cell: ({ name }) => name ?? NONE },
              { heading: 'Status', cell: ({ status }) => <Status of={status} /> },
              { heading: 'Last used (UTC)', cell: ({ lastUsedAt }) => time(lastUsedAt) },
              { heading: 'Expires (UTC)', cell: ({ expiresAt }) => time(expiresAt) },
              ...(mayChange
                ? [
                    {
                      heading: 'Change',
                      cell: (key: Schemas['ApiKey']) => (key.status === 'active' ? revoke(key.keyId) : null),
                    },
                  ]
                : []),
            ]}
          />
        )}
      </Load>
      {mayChange && isActive ? (
        <Form label="New key" button="Issue key" act={issue}>
          <Field label="What the key is for" name="name" />
        </Form>
      ) : null}
    </Panel>
  );
}

const PartnerGames = ({ games }: { readonly games: readonly Schemas['OperatorGame'][] }) => (
  <Table
    caption="Games"
    rows={games}
    keyOf={({ gameConfigId }) => gameConfigId}
    empty="The partner has no game yet."
    columns={[
      {
        heading: 'Game',
        cell: ({ gameConfigId, displayName }) => <a href={linkTo(['games', gameConfigId])}>{displayName}</a>,
      },
      { heading: 'Kind', cell: ({ gameType }) => gameType },
      { heading: 'Status', cell: ({ status }) => <Status of={status} /> },
      { heading: 'Spins', cell: ({ totals }) => count(totals.spins), isNumber: true },
      { heading: 'Return', cell: ({ totals }) => percent(totals.actualRtp), isNumber: true },
    ]}
  />
);

function Hooks({ id }: { readonly id: number }) {
  const params = { path: { id } };
  const loaded = useLoad(() => bodyOf(api.GET('/partners/{id}/webhooks', { params })), [id]);
  return (
    <Panel title="Webhooks">
      <Load loaded={loaded}>
        {({ webhooks }) => (
          <Table
            caption="Webhooks"
            rows={webhooks}
            keyOf={(webhook) => webhook.id}
            empty="The partner has no webhook."
            columns={[
              { heading: 'URL', cell: ({ url }) => url },
              { heading: 'Events', cell: ({ events }) => events.join(', ') },
              { heading: 'State', cell: ({ health }) => <Status of={health.state} /> },
              { heading: 'Reason', cell: ({ health }) => health.reason ?? '' },
              { heading: 'Failing since', cell: ({ health }) => time(health.failingSince) },
              { heading: 'Pending', cell: ({ health }) => count(health.pending), isNumber: true },
            ]}
          />
        )}
      </Load>
    </Panel>
  );
}
