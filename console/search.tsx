/** The search over all pages and objects (Ctrl+K or ⌘K): a dialog with a field and links to the results. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, bodyOf, type Schemas } from './api.js';
import { usePartnerNames } from './names.js';
import { findPages } from './pages/index.js';
import { linkTo, useAddressChange } from './router.js';
import { Fault } from './ui.js';

/** Delay after the last keystroke before a search starts, in ms. */
const PAUSE_MS = 200;

interface Hit {
  readonly link: string;
  readonly kind: string;
  readonly text: string;
}

const beginning = (prefix: string | null): string => (prefix === null ? '' : ` (${prefix}…)`);

/** Shortens a pasted key to its prefix, because a secret must not be sent in a URL. */
const withoutSecret = (text: string): string => /^kso?_.{6}/.exec(text)?.[0] ?? text;

function hitsOf(found: Schemas['Found'], nameOf: (id: number) => string): Hit[] {
  return [
    ...found.plays.map(({ kind, id }) => ({ link: linkTo(['lookup'], { id }), kind, text: id })),
    ...found.partners.map(({ partnerId, name, slug }) => ({
      link: linkTo(['partners', partnerId]),
      kind: 'partner',
      text: `${name} (${slug})`,
    })),
    ...found.games.map(({ gameConfigId, displayName, partnerId }) => ({
      link: linkTo(['games', gameConfigId]),
      kind: 'game',
      text: `${displayName}, ${nameOf(partnerId)}`,
    })),
    ...found.players.map(({ partnerId, playerId }) => ({
      link: linkTo(['players', partnerId, playerId]),
      kind: 'player',
      text: `${playerId}, ${nameOf(partnerId)}`,
    })),
    ...found.keys.map(({ partnerId, keyId, name, prefix }) => ({
      link: linkTo(['partners', partnerId]),
      kind: 'key',
      text: `${name ?? keyId}${beginning(prefix)}, ${nameOf(partnerId)}`,
    })),
    ...found.operators.map(({ name, prefix }) => ({
      link: linkTo(['operators']),
      kind: 'operator',
      text: `${name}${beginning(prefix)}`,
    })),
  ];
}

export function Search() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'k') return;
      event.preventDefault();
      // The search does not open while another dialog waits for an answer.
      if (document.querySelector('dialog[open]') === null) setOpen(true);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button type="button" class="quiet search" onClick={() => setOpen(true)}>
        Search <kbd>Ctrl K</kbd>
      </button>
      {isOpen ? <Palette onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function Palette({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { nameOf } = usePartnerNames();
  const [text, setText] = useState('');
  const [found, setFound] = useState<{ of: string; body?: Schemas['Found']; error?: unknown }>();
  useAddressChange(onClose);
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  const wanted = withoutSecret(text.trim());
  useEffect(() => {
    if (wanted === '') return;
    let isOver = false;
    const timer = setTimeout(() => {
      bodyOf(api.GET('/search', { params: { query: { q: wanted } } })).then(
        (body) => !isOver && setFound({ of: wanted, body }),
        (error: unknown) => !isOver && setFound({ of: wanted, error }),
      );
    }, PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [wanted]);
  const current = found?.of === wanted ? found : undefined;
  // Pages are known at once; objects follow when the service has answered.
  const pages = findPages(text).map(
    ({ path, text: shown }): Hit => ({ link: linkTo([path]), kind: 'page', text: shown }),
  );
  const hits = [...pages, ...(current?.body === undefined ? [] : hitsOf(current.body, nameOf))];
  const first = hits[0];
  return (
    <dialog
      ref={dialog}
      class="search"
      aria-label="Search"
      onCancel={onClose}
      onKeyDown={(event) => {
        // In a search field with text, the Escape key would only clear the field.
        if (event.key === 'Escape') onClose();
      }}
    >
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          if (first === undefined) return;
          window.location.hash = first.link;
          onClose();
        }}
      >
        <label class="field">
          <span>Page, partner, game, player, spin, round, operator, or the first characters of a key</span>
          <input
            type="search"
            name="q"
            maxLength={128}
            autocomplete="off"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
      </form>
      <div role="status">
        {current?.body !== undefined && hits.length === 0 ? (
          <p class="note">No matches. Type a player's full name.</p>
        ) : null}
      </div>
      <Fault error={current?.error} />
      <ul class="hits">
        {hits.map(({ link, kind, text: shown }) => (
          <li key={link + kind + shown}>
            <a href={link} onClick={onClose}>
              <span class="kind">{kind}</span> {shown}
            </a>
          </li>
        ))}
      </ul>
    </dialog>
  );
}
