/** Names of partners and games, which titles, links and fields show instead of ids. */
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
  /** All partners that have been loaded. */
  readonly all: readonly Partner[];
  readonly isLoaded: boolean;
  readonly nameOf: (partnerId: number) => string;
  /** Returns the partner id for an id or a slug. Returns undefined if there is no such partner. */
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

/** Returns the partner column of a table whose rows each belong to a partner. */
export function usePartnerColumn(): Column<{ readonly partnerId: number }> {
  const { nameOf } = usePartnerNames();
  return {
    heading: 'Partner',
    cell: ({ partnerId }) => <PartnerLink id={partnerId} />,
    value: ({ partnerId }) => nameOf(partnerId),
  };
}

/** Input for a partner by slug or id, with suggestions by name. */
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
      hint={isOptional === true ? 'Slug or id; empty for all' : 'Slug or id'}
    />
  );
}

/** Filters a list by partner. The slug or id of the partner is stored in the address. */
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

/**
 * Returns the id of the partner that the list is filtered by. Undefined if the list shows all partners, or if
 * no partner has this slug or id.
 */
export function usePartnerWanted(place: Place): number | undefined {
  const { idOf } = usePartnerNames();
  return idOf(place.query.get('partner') ?? '');
}

/** Pages whose address has the slug or id of a partner as its second part. */
const OF_PARTNER = ['partners', 'players', 'settlements'];

/**
 * Replaces the partner's slug in a place by the partner's id. Returns undefined if no partner has this slug,
 * or if the partners are not loaded yet.
 */
export function withPartnerId(place: Place, idOf: Names['idOf']): Place | undefined {
  const [room = '', partner, ...others] = place.parts;
  if (partner === undefined || !OF_PARTNER.includes(room)) return place;
  const id = idOf(partner);
  return id === undefined ? undefined : { ...place, parts: [room, String(id), ...others] };
}

/** Context with the function that sets the title of the current page. */
export const Naming = createContext<(title: string) => void>(() => {});

/**
 * Sets the title of the page.
 *
 * @param title undefined: the title is not known yet
 */
export function useTitle(title: string | undefined): void {
  const name = useContext(Naming);
  useEffect(() => {
    if (title !== undefined) name(title);
  }, [title, name]);
}

const GAMES_LISTED = 100;

/**
 * Returns a function for the names of a partner's newest games. For older games it returns the game's number.
 *
 * @param partnerId undefined: no names are needed yet
 */
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

/** The game column of a table whose rows each contain the id and name of a game. */
export const GAME_COLUMN: Column<{ readonly gameConfigId: number; readonly displayName: string }> = {
  heading: 'Game',
  cell: ({ gameConfigId, displayName }) => <GameLink id={gameConfigId}>{displayName}</GameLink>,
};

/** A link to a game with its name, which is loaded. */
export function NamedGame({ id }: { readonly id: number }) {
  const loaded = useLoad(() => bodyOf(api.GET('/games/{id}', { params: { path: { id } } })), [id]);
  return <GameLink id={id}>{loaded.data?.displayName ?? `game ${id}`}</GameLink>;
}

/**
 * Returns a function that finds the partner id for the text of a field. The function throws an Error if there
 * is no such partner.
 */
export function usePartnerOf(): (text: string) => number {
  const { idOf } = usePartnerNames();
  return (text) => {
    const id = idOf(text);
    if (id === undefined) throw new Error(`There is no partner with the name ${text}`);
    return id;
  };
}
