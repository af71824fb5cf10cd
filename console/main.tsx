/** The console: signs an operator in and shows the page of the current address. */
import { render } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiFault, api, bodyOf, type Schemas, signIn, useToken } from './api.js';
import { Boundary } from './boundary.js';
import { DealingBanner, DealingState } from './dealingState.js';
import { DialogHost } from './dialog.js';
import { Naming, PartnerNames, usePartnerNames, withPartnerId } from './names.js';
import { GROUPS, pageAt, pathOf, sectionOf } from './pages/index.js';
import { isOutage, Outage, ProblemsBanner, ProblemsState } from './problems.js';
import { linkTo, usePlace } from './router.js';
import { Search } from './search.js';
import { Signed } from './session.js';
import './style.css';
import { Fault } from './ui.js';

interface SignInProps {
  readonly onSigned: (session: Schemas['Session']) => void;
}

function KeyForm({ onSigned }: SignInProps) {
  const [error, setError] = useState<unknown>();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get('key')).trim();
    try {
      onSigned(await signIn(key));
    } catch (fault) {
      setError(fault);
    }
  };
  return (
    <form aria-label="Sign in" onSubmit={submit}>
      <label class="field">
        <span>Operator key</span>
        <input ref={field} name="key" type="password" required autocomplete="current-password" />
      </label>
      <button type="submit">Sign in</button>
      {isOutage(error) ? (
        <Outage error={error} kept="your key could not be checked and stays valid" />
      ) : (
        <Fault error={error} />
      )}
    </form>
  );
}

const SignIn = ({ onSigned }: SignInProps) => (
  <main class="sign-in">
    <h1>Spindle console</h1>
    <KeyForm onSigned={onSigned} />
    <p>
      An admin issues keys with <code>spindle operator issue</code>. The first key is the one that the service
      was started with.
    </p>
  </main>
);

/** Asks for the key above a page whose session ended, so that its forms keep their text. */
function SignInAgain({ onSigned }: SignInProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current!;
    // Chromium closes a dialog at the second Escape even if its cancel event is refused.
    const keep = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') event.preventDefault();
    };
    window.addEventListener('keydown', keep, true);
    element.showModal();
    return () => {
      window.removeEventListener('keydown', keep, true);
      element.close();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class="sign-in-again"
      aria-labelledby="session-ended"
      onCancel={(event) => event.preventDefault()}
    >
      <p id="session-ended">
        <strong>Your session ended.</strong> Sign in again to go on.
      </p>
      <KeyForm onSigned={onSigned} />
    </dialog>
  );
}

function Page() {
  const asked = usePlace();
  const names = usePartnerNames();
  const { title, View } = pageAt(asked.parts);
  const heading = useRef<HTMLHeadingElement>(null);
  const isFirst = useRef(true);
  const path = asked.parts.join('/');
  const [named, setNamed] = useState<{ path: string; title: string }>();
  const shown = named?.path === path ? named.title : title;
  const name = useCallback((text: string) => setNamed({ path, title: text }), [path]);
  useEffect(() => {
    document.title = `${shown} · Spindle console`;
  }, [shown]);
  // On a new path the focus moves to the heading, so that screen readers announce the page.
  useEffect(() => {
    if (!isFirst.current) heading.current?.focus();
    isFirst.current = false;
  }, [path]);
  const place = withPartnerId(asked, names.idOf);
  return (
    <main id="main">
      <Tabs here={pathOf(asked.parts)} />
      <h1 ref={heading} tabIndex={-1}>
        {shown}
      </h1>
      <Naming.Provider value={name}>
        {place !== undefined ? (
          <Boundary key={path}>
            <View place={place} />
          </Boundary>
        ) : names.isLoaded ? (
          <p class="empty">There is no partner with the name {asked.parts[1]}.</p>
        ) : (
          <p role="status">Loading…</p>
        )}
      </Naming.Provider>
    </main>
  );
}

function Rooms({ here }: { readonly here: string }) {
  const current = sectionOf(here)?.title;
  const list = useRef<HTMLUListElement>(null);
  // On a narrow screen the links are in a single row that scrolls.
  useEffect(() => {
    const show = (): void =>
      list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
    show();
    window.addEventListener('resize', show);
    return () => window.removeEventListener('resize', show);
  }, [here]);
  return (
    <nav class="rooms" aria-label="Console">
      <ul ref={list}>
        {GROUPS.map(({ title: group, sections }) => (
          <li key={group}>
            {group === undefined ? null : <h2>{group}</h2>}
            <ul>
              {sections.map(({ title, pages }) => (
                <li key={title}>
                  <a
                    href={linkTo([pages[0].path])}
                    aria-current={title !== current ? undefined : pages.length > 1 ? 'true' : 'page'}
                  >
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Links to the pages of the current section. A section with one page needs none. */
function Tabs({ here }: { readonly here: string }) {
  const { title, pages } = sectionOf(here) ?? { title: '', pages: [] };
  if (pages.length <= 1) return <div class="tabs" />;
  return (
    <nav class="tabs" aria-label={`Pages of ${title}`}>
      {pages.map((page) => (
        <a key={page.path} href={linkTo([page.path])} aria-current={page.path === here ? 'page' : undefined}>
          {page.title}
        </a>
      ))}
    </nav>
  );
}

function Shell({
  session,
  onSignOut,
}: {
  readonly session: Schemas['Session'];
  readonly onSignOut: () => void;
}) {
  const { parts } = usePlace();
  return (
    <Signed.Provider value={session}>
      <PartnerNames>
        <DealingState>
          <button type="button" class="skip" onClick={toContent}>
            Skip to the content
          </button>
          <header>
            <strong>Spindle</strong>
            <Search />
            <span class="who">
              {session.operator} ({session.role})
            </span>
            <button type="button" class="quiet" onClick={onSignOut}>
              Sign out
            </button>
          </header>
          <div class="banners">
            <ProblemsBanner />
            <DealingBanner />
          </div>
          <Rooms here={pathOf(parts)} />
          <Page />
          <DialogHost />
        </DealingState>
      </PartnerNames>
    </Signed.Provider>
  );
}

/**
 * Moves the focus to the content. A link is not possible, because the address names the page and must not
 * change.
 */
function toContent(): void {
  document.querySelector<HTMLElement>('main h1')?.focus();
}

const RETRIED_AFTER_MS = 3000;

function App() {
  const [session, setSession] = useState<Schemas['Session'] | null>();
  const [isEnded, setEnded] = useState(false);
  /** Reason why the service can't say whether there is a session. */
  const [outage, setOutage] = useState<unknown>();
  const begin = useCallback((begun: Schemas['Session']): void => {
    useToken(begun.csrfToken ?? '', () => setEnded(true));
    setSession(begun);
    setEnded(false);
  }, []);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const open = (): Promise<void> =>
      bodyOf(api.GET('/session', {})).then(begin, (error: unknown) => {
        if (!(error instanceof ApiFault)) throw error;
        if (!isOutage(error)) {
          setSession(null);
          return;
        }
        setOutage(error);
        timer = setTimeout(open, RETRIED_AFTER_MS);
      });
    void open();
    return () => clearTimeout(timer);
  }, [begin]);
  if (session === undefined)
    return outage === undefined ? null : (
      <main class="sign-in">
        <h1>Spindle console</h1>
        <Outage error={outage} kept="your session is kept" />
        <p role="status">The console opens when the service can read your session again.</p>
      </main>
    );
  if (session === null) return <SignIn onSigned={begin} />;
  const signOut = async (): Promise<void> => {
    await bodyOf(api.DELETE('/session', {})).catch(() => {});
    setSession(null);
  };
  /** Begins another session of the operator on the same page. Another operator starts from a fresh page. */
  const resume = (begun: Schemas['Session']): void => {
    if (begun.operator === session.operator) begin(begun);
    else window.location.reload();
  };
  return (
    <>
      <Shell session={session} onSignOut={signOut} />
      {isEnded ? <SignInAgain onSigned={resume} /> : null}
    </>
  );
}

render(
  <ProblemsState>
    <App />
  </ProblemsState>,
  document.getElementById('app')!,
);
