/** Pages of partners: settings, keys, games, remaining funding, and the partner's cell. */
import { useState } from 'preact/hooks';
import { stateOf } from '../../src/api/client/views/games.js';
import {
  ACTIVATE_PARTNER,
  DEACTIVATE_PARTNER,
  endKey,
  KEYS,
  PARTNERS,
  REVOKE_KEY,
} from '../../src/api/client/views/partners.js';
import { WEBHOOKS } from '../../src/api/client/views/service.js';
import { send } from '../../src/api/client/views/view.js';
import { SETTING_LIST, type ShownSetting } from '../../src/domain/partnerSettings.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { ChangeForm, Field, Form, questionOf } from '../form.js';
import { count, NONE, percent, time, usd } from '../format.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import { GAME_COLUMN, usePartnerNames, useTitle } from '../names.js';
import { go, linkTo, type Place } from '../router.js';
import { useMayChange } from '../session.js';
import { columnsOf, Table } from '../table.js';
import { TrafficChart } from '../traffic.js';
import { Copied, DangerZone, Facts, KeyPrefix, Load, Panel, Secret, Status } from '../ui.js';
import { PartnerSwitch } from './dealing.js';
import { Move, Moves } from './moves.js';

type Partner = Schemas['PartnerResponse'];

export function Partners({ place }: { readonly place: Place }) {
  const ofCell = place.query.get('cell');
  const mayChange = useMayChange();
  const names = usePartnerNames();
  const loaded = useLoad(() => bodyOf(api.GET('/partners', {})), []);
  const create = async ({ slug, name, environment }: Record<string, string>) => {
    const body = { slug: slug!, name: name!, environment: environment as Partner['environment'] };
    const { partnerId } = await bodyOf(api.POST('/partners', { body }));
    names.reload();
    go(['partners', partnerId]);
    return 'Made.';
  };
  return (
    <>
      {mayChange ? (
        <Toolbar>
          <FormDialog title="New partner">
            <Form label="New partner" button="Create partner" act={create}>
              <Field label="Slug" name="slug" required hint="Lowercase letters, digits and hyphens" />
              <Field label="Name" name="name" required />
              <Field label="Environment" name="environment" options={['sandbox', 'production']} />
            </Form>
          </FormDialog>
        </Toolbar>
      ) : null}
      {ofCell === null ? null : (
        <p class="note">
          Of cell {ofCell} only. <a href={linkTo(['partners'])}>All partners</a>
        </p>
      )}
      <Load loaded={loaded}>
        {({ partners }) => (
          <Table
            caption="Partners"
            rows={ofCell === null ? partners : partners.filter(({ cell }) => String(cell) === ofCell)}
            keyOf={({ partnerId }) => partnerId}
            empty={
              ofCell === null
                ? 'There are no partners yet. Create the first one with New partner, then issue a key to it.'
                : 'This cell has no partners. New partners are placed in the cells with the fewest.'
            }
            columns={columnsOf(PARTNERS, {
              Name: ({ partnerId, name }) => <a href={linkTo(['partners', partnerId])}>{name}</a>,
            })}
          />
        )}
      </Load>
    </>
  );
}

export function PartnerDetail({ place }: { readonly place: Place }) {
  const id = Number(place.parts[1]);
  const params = { path: { id } };
  const loaded = useLoad(() => bodyOf(api.GET('/partners/{id}', { params })), [id]);
  useTitle(loaded.data?.name);
  const games = useLoad(
    () => bodyOf(api.GET('/games', { params: { query: { partnerId: id, limit: 100 } } })),
    [id],
  );
  return (
    <Load loaded={loaded}>
      {(partner) => (
        <>
          <Settings partner={partner} onChanged={loaded.reload} />
          <PartnerFacts partner={partner} games={games.data?.games} />
          <Panel title="Traffic">
            <TrafficChart partnerId={id} />
          </Panel>
          <Keys id={id} isActive={partner.isActive} />
          <Panel title="Games">
            <Load loaded={games}>{(list) => <PartnerGames games={list.games} />}</Load>
            <p>
              <a href={linkTo(['raffles'], { partner: String(id) })}>Create a raffle</a>
            </p>
          </Panel>
          <Hooks id={id} />
          <Moves id={id} onMoved={loaded.reload} />
          <p>
            <a href={linkTo(['audit'], { subject: `partner:${id}` })}>Changes in the audit log</a>
          </p>
          <Activity partner={partner} onChanged={loaded.reload} />
        </>
      )}
    </Load>
  );
}

const LIMITS = SETTING_LIST.flatMap(({ shown, label }) =>
  label === undefined
    ? []
    : [{ shown: shown as Exclude<ShownSetting, 'balanceMode' | 'contactEmail'>, label }],
);

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
        ['Slug', <Copied key="slug" text={partner.slug} />],
        ['Environment', partner.environment],
        ['Status', <Status key="status" of={partner.isActive ? 'active' : 'inactive'} />],
        ['Dealing', <Status key="dealing" of={partner.dealing} />],
        ['Balances', partner.balanceMode],
        ['Funding', partner.fundingUsd === null ? 'no bound' : usd(partner.fundingUsd)],
        ['Funding left', partner.fundingUsd === null ? NONE : usd(left)],
        ...LIMITS.filter(({ shown }) => shown !== 'fundingUsd').map(({ shown, label }): [string, string] => [
          label,
          shown.endsWith('Usd') ? usd(partner[shown]) : count(partner[shown]),
        ]),
        ['Cell', partner.cell],
        ['Created (UTC)', time(partner.createdAt)],
      ]}
    />
  );
}

function Activity({ partner, onChanged }: { readonly partner: Partner; readonly onChanged: () => void }) {
  const { partnerId: id, isActive, name } = partner;
  if (!useMayChange()) return null;
  return (
    <DangerZone>
      <Move partner={partner} onChanged={onChanged} />
      <PartnerSwitch partner={partner} onChanged={onChanged} />
      <ChangeForm
        change={isActive ? DEACTIVATE_PARTNER : ACTIVATE_PARTNER}
        path={{ id }}
        {...{ name, onDone: onChanged }}
      />
    </DangerZone>
  );
}

function Settings({ partner, onChanged }: { readonly partner: Partner; readonly onChanged: () => void }) {
  const params = { path: { id: partner.partnerId } };
  const change = async (body: Schemas['PartnerPatch']): Promise<string> => {
    await bodyOf(api.PATCH('/partners/{id}', { params, body }));
    onChanged();
    return 'Changed.';
  };
  if (!useMayChange()) return null;
  const changed = (values: Record<string, string>): Schemas['PartnerPatch'] => ({
    ...numbers(values),
    ...(values.name === partner.name ? {} : { name: values.name! }),
    ...(values.balanceMode === partner.balanceMode
      ? {}
      : { balanceMode: values.balanceMode as Partner['balanceMode'] }),
    ...(values.contactEmail === (partner.contactEmail ?? '')
      ? {}
      : { contactEmail: values.contactEmail || null }),
    reason: values.reason!,
  });
  const numbers = (values: Record<string, string>): Schemas['PartnerPatch'] =>
    Object.fromEntries(
      LIMITS.map(({ shown }) => [shown, values[shown] === '' ? null : Number(values[shown])] as const).filter(
        ([name, value]) => value !== partner[name],
      ),
    );
  return (
    <Toolbar>
      <FormDialog title="Change settings">
        <Form
          label="Settings"
          button="Change"
          keepsValues
          confirm={{
            title: `Change the settings of ${partner.name}?`,
            consequence: "The new settings apply to the partner's next requests.",
            button: 'Change',
            asksReason: true,
          }}
          act={(values) => change(changed(values))}
        >
          <Field label="Name" name="name" value={partner.name} required />
          {LIMITS.map(({ shown, label }) => (
            <Field key={shown} label={label} name={shown} type="number" value={partner[shown] ?? ''} />
          ))}
          <Field
            label="Balances"
            name="balanceMode"
            options={['track', 'enforce']}
            value={partner.balanceMode}
          />
          <Field label="Contact" name="contactEmail" type="email" value={partner.contactEmail ?? ''} />
        </Form>
      </FormDialog>
    </Toolbar>
  );
}

type ApiKey = Schemas['ApiKey'];

/** The form of a time that a field of this page has: UTC, in minutes. */
const inMinutes = (iso: string): string => iso.slice(0, 16);

/** A field for the end of a key. Its value is a time in UTC, or empty for a key that never expires. */
const ExpiryField = ({ value }: { readonly value?: string | null }) => (
  <Field
    label="Expires (UTC)"
    name="expires"
    type="datetime-local"
    value={value == null ? '' : inMinutes(value)}
    hint={`Now it is ${time(inMinutes(new Date().toISOString()))} UTC. Empty: never`}
  />
);

interface OfKey {
  readonly id: number;
  readonly apiKey: ApiKey;
  readonly onChanged: () => void;
}

/** Changes the expiry of a key. The field has the present one, so an empty field is a choice. */
function ChangeExpiry({ id, apiKey: { keyId, expiresAt }, onChanged }: OfKey) {
  const present = expiresAt === null ? '' : inMinutes(expiresAt);
  const endAt = (expires: string) => endKey(expires === '' ? null : `${expires}:00Z`, `${time(expires)} UTC`);
  return (
    <FormDialog title={`Change expiry of key ${keyId}`} button="Change expiry">
      <Form
        label="Expiry"
        button="Change"
        confirm={({ expires }) => {
          if (expires === present) return [];
          return [questionOf(endAt(expires!), `key ${keyId}`)];
        }}
        act={async ({ expires, reason }) => {
          if (expires === present) return 'Nothing was changed.';
          const { endpoint, body, done } = endAt(expires!);
          await bodyOf(send(api, endpoint, { path: { id, keyId }, body, reason }));
          onChanged();
          return String(done);
        }}
      >
        <ExpiryField value={expiresAt} />
      </Form>
    </FormDialog>
  );
}

function RotateKey({ id, apiKey: { keyId }, onChanged, onIssued }: OfKey & WithIssued) {
  return (
    <FormDialog title={`Rotate key ${keyId}`} button="Rotate">
      <Form
        label="Rotation"
        button="Issue the new key"
        act={async ({ hours }) => {
          const params = { path: { id, keyId } };
          const body = { overlapSeconds: Math.round(Number(hours) * 3600) };
          const { apiKey, replacedExpiresAt } = await bodyOf(
            api.POST('/partners/{id}/keys/{keyId}/rotate', { params, body }),
          );
          onIssued(apiKey);
          onChanged();
          return `This key is valid until ${time(replacedExpiresAt)} UTC.`;
        }}
      >
        <Field
          label="Overlap in hours"
          name="hours"
          type="number"
          value={24}
          required
          hint="The old key stays valid for this time, at most 720 hours"
        />
      </Form>
    </FormDialog>
  );
}

const RevokeKey = ({ id, apiKey: { keyId, name }, onChanged }: OfKey) => (
  <ChangeForm
    change={REVOKE_KEY}
    name={`key ${keyId}`}
    path={{ id, keyId }}
    {...{ typed: name ?? String(keyId), isInline: true, onDone: onChanged }}
  />
);

interface WithIssued {
  /** Shows a new key above the table. */
  readonly onIssued: (apiKey: string) => void;
}

function Keys({ id, isActive }: { readonly id: number; readonly isActive: boolean }) {
  const mayChange = useMayChange();
  const params = { path: { id } };
  const loaded = useLoad(() => bodyOf(api.GET('/partners/{id}/keys', { params })), [id]);
  const [issued, setIssued] = useState<string>();
  const issue = async ({ name, expires }: Record<string, string>) => {
    const body = {
      ...(name === '' ? {} : { name: name! }),
      ...(expires === '' ? {} : { expiresAt: `${expires}:00Z` }),
    };
    const { apiKey } = await bodyOf(api.POST('/partners/{id}/keys', { params, body }));
    setIssued(apiKey);
    loaded.reload();
    return 'Issued.';
  };
  const changes = (apiKey: ApiKey) =>
    apiKey.status === 'active' ? (
      <div class="actions">
        {isActive ? <RotateKey {...{ id, apiKey, onChanged: loaded.reload, onIssued: setIssued }} /> : null}
        <ChangeExpiry {...{ id, apiKey, onChanged: loaded.reload }} />
        <RevokeKey {...{ id, apiKey, onChanged: loaded.reload }} />
      </div>
    ) : null;
  return (
    <Panel title="API keys">
      {mayChange && isActive ? (
        <Toolbar>
          <FormDialog title="New key">
            <Form label="New key" button="Issue key" act={issue}>
              <Field label="Purpose of the key" name="name" />
              <ExpiryField />
            </Form>
          </FormDialog>
        </Toolbar>
      ) : null}
      {issued === undefined ? null : <Secret label="Key" value={issued} />}
      <Load loaded={loaded}>
        {({ keys }) => (
          <Table
            caption="API keys"
            rows={keys}
            keyOf={({ keyId }) => keyId}
            empty="No keys yet. Issue one with New key, and give it to the partner."
            columns={columnsOf(KEYS, { 'Begins with': ({ prefix }) => <KeyPrefix of={prefix} /> })}
            actions={mayChange && changes}
          />
        )}
      </Load>
    </Panel>
  );
}

const PartnerGames = ({ games }: { readonly games: readonly Schemas['OperatorGame'][] }) => (
  <Table
    caption="Games"
    rows={games}
    keyOf={({ gameConfigId }) => gameConfigId}
    empty="This partner has no games yet. It registers slot games by the API; create raffles and tables here."
    columns={[
      GAME_COLUMN,
      { heading: 'Kind', cell: ({ gameType }) => gameType },
      { heading: 'Status', cell: (game) => <Status of={stateOf(game)} /> },
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
            empty="This partner has no webhooks. It registers them by the API (POST /webhooks)."
            columns={[
              ...columnsOf(WEBHOOKS, { URL: ({ url }) => <span class="address">{url}</span> }),
              { heading: 'Events', cell: ({ events }) => events.join(', ') },
            ]}
          />
        )}
      </Load>
    </Panel>
  );
}
