/** Names of partners and games: what titles, links and fields show in place of numbers. */
import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useMemo } from 'preact/hooks';
import { api, bodyOf, type Schemas } from './api.js';
import { Field, Form } from './form.js';
import { type Loaded, useLoad } from './load.js';
import { go, linkTo, type Place } from './router.js';
import type { Column } from './table.js';

type Partner = Schemas['PartnerResponse'];

const EVERY_MS = 60_000;

const Partners = createContext<Loaded<{ partners: readonly Partner[] }> | undefined>(undefined);

export function PartnerNames({ children }: { readonly children: ComponentChildren }) {
  const loaded = useLoad(() => bodyOf(api.GET('/partners', {})), [], EVERY_MS);
  return <Partners.Provider value={loaded}>{children}</Partners.Provider>;
}

interface Names {
  /** All partners, as far as they are loaded. */
  readonly all: readonly Partner[];
  readonly isLoaded: boolean;
  readonly nameOf: (partnerId: number) => string;
  /** The id that an id or a slug means; undefined: there is no such partner. */
  readonly idOf: (text: string) => number | undefined;
  readonly reload: () => void;
}

export function usePartnerNames(): Names {
  const loaded = useContext(Partners);
  const all = loaded?.data?.partners ?? [];
  return useMemo(() => {
    const byId = new Map(all.map((partner) => [partner.partnerId, partner]));
    const bySlug = new Map(all.map((partner) => [partner.slug, partner.partnerId]));
    return {
      all,
      isLoaded: loaded?.data !== undefined || loaded?.error !== undefined,
      nameOf: (partnerId) => byId.get(partnerId)?.name ?? `partner ${partnerId}`,
      idOf: (text) => bySlug.get(text.trim()) ?? (/^[1-9]\d*$/.test(text.trim()) ? Number(text) : undefined),
      reload: loaded?.reload ?? (() => {}),
    };
  }, [all, loaded?.error]);
}

export function PartnerLink({ id }: { readonly id: number }) {
  const { nameOf } = usePartnerNames();
  return <a href={linkTo(['partners', id])}>{nameOf(id)}</a>;
}

/** The column of a table whose rows are each of a partner. */
export function usePartnerColumn(): Column<{ readonly partnerId: number }> {
  const { nameOf } = usePartnerNames();
  return {
    heading: 'Partner',
    cell: ({ partnerId }) => <PartnerLink id={partnerId} />,
    value: ({ partnerId }) => nameOf(partnerId),
  };
}

/** A partner by its slug or id, proposed by name. */
export function PartnerField({
  value,
  isOptional,
}: {
  readonly value?: string | undefined;
  readonly isOptional?: boolean;
}) {
  const { all } = usePartnerNames();
  const proposals = all.map(({ slug, name }) => ({ value: slug, label: name }));
  return (
    <Field
      label="Partner"
      name="partner"
      value={value}
      proposals={proposals}
      required={isOptional !== true}
      hint={isOptional === true ? 'Slug or id; none: all' : 'Slug or id'}
    />
  );
}

/** Shows those of a list that are of one partner, whose slug or id the address keeps. @param place where the list is */
export function PartnerFilter({ place }: { readonly place: Place }) {
  const partnerOf = usePartnerOf();
  return (
    <Form
      label="Filter by partner"
      button="Show"
      isInline
      keepsValues
      act={async ({ partner }) => {
        if (partner !== '') partnerOf(partner!);
        go(place.parts, { partner: partner! });
        return null;
      }}
    >
      <PartnerField value={place.query.get('partner') ?? ''} isOptional />
    </Form>
  );
}

/** The partner that a list is of: undefined where it is of all, or where nobody is called so. */
export function usePartnerWanted(place: Place): number | undefined {
  const { idOf } = usePartnerNames();
  return idOf(place.query.get('partner') ?? '');
}

/** Pages of one thing of a partner, whose slug or id is the second part of their address. */
const OF_PARTNER = ['partners', 'players', 'settlements'];

/** The place with the partner's id where its slug stood; undefined: no partner is called so, or that is not known yet. */
export function withPartnerId(place: Place, idOf: Names['idOf']): Place | undefined {
  const [room = '', partner, ...others] = place.parts;
  if (partner === undefined || !OF_PARTNER.includes(room)) return place;
  const id = idOf(partner);
  return id === undefined ? undefined : { ...place, parts: [room, String(id), ...others] };
}

/** Sets the title of the page that is shown. */
export const Naming = createContext<(title: string) => void>(() => {});

/** Names the page after what it shows. @param title undefined: not known yet */
export function useTitle(title: string | undefined): void {
  const name = useContext(Naming);
  useEffect(() => {
    if (title !== undefined) name(title);
  }, [title, name]);
}

const GAMES_LISTED = 100;

/** Names of a partner's newest games; a game beyond them has its number. @param partnerId undefined: none are wanted yet */
export function useGameNames(partnerId: number | undefined): (gameId: number) => string {
  const loaded = useLoad(
    async () =>
      partnerId === undefined
        ? undefined
        : bodyOf(api.GET('/games', { params: { query: { partnerId, limit: GAMES_LISTED } } })),
    [partnerId],
  );
  return (gameId) =>
    loaded.data?.games.find(({ gameConfigId }) => gameConfigId === gameId)?.displayName ?? `game ${gameId}`;
}

export const GameLink = ({ id, children }: { readonly id: number; readonly children: ComponentChildren }) => (
  <a href={linkTo(['games', id])}>{children}</a>
);

/** The column of a table whose rows are each of a game that they name. */
export const GAME_COLUMN: Column<{ readonly gameConfigId: number; readonly displayName: string }> = {
  heading: 'Game',
  cell: ({ gameConfigId, displayName }) => <GameLink id={gameConfigId}>{displayName}</GameLink>,
};

/** A game by its name, which is asked for. */
export function NamedGame({ id }: { readonly id: number }) {
  const loaded = useLoad(() => bodyOf(api.GET('/games/{id}', { params: { path: { id } } })), [id]);
  return <GameLink id={id}>{loaded.data?.displayName ?? `game ${id}`}</GameLink>;
}

/** The id of the partner that a field names. The function throws an Error where there is none. */
export function usePartnerOf(): (text: string) => number {
  const { idOf } = usePartnerNames();
  return (text) => {
    const id = idOf(text);
    if (id === undefined) throw new Error(`There is no partner called ${text}`);
    return id;
  };
}
