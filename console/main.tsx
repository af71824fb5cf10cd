/** The console: signs in, and shows the page that the address names. */
import { render } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiFault, api, bodyOf, type Schemas, signIn, useToken } from './api.js';
import { PAGES, pageAt } from './pages/index.js';
import { linkTo, usePlace } from './router.js';
import { Signed } from './session.js';
import './style.css';
import { Fault } from './ui.js';

function SignIn({ onSigned }: { readonly onSigned: (session: Schemas['Session']) => void }) {
  const [error, setError] = useState<unknown>();
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
    <main class="sign-in">
      <h1>Spindle console</h1>
      <form aria-label="Sign in" onSubmit={submit}>
        <label class="field">
          <span>Operator key</span>
          <input name="key" type="password" required autocomplete="current-password" />
        </label>
        <button type="submit">Sign in</button>
        <Fault error={error} />
      </form>
      <p>
        An admin issues keys with <code>spindle operator issue</code>. The first key is the one that the
        service was started with.
      </p>
    </main>
  );
}

function Page() {
  const place = usePlace();
  const { title, View } = pageAt(place.parts);
  const heading = useRef<HTMLHeadingElement>(null);
  const isFirst = useRef(true);
  const path = place.parts.join('/');
  // A new path is what a screen reader is to be told of.
  useEffect(() => {
    document.title = `${title} · Spindle console`;
    if (!isFirst.current) heading.current?.focus();
    isFirst.current = false;
  }, [path, title]);
  return (
    <main id="main">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      <View key={path} place={place} />
    </main>
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
  const here = parts[0] ?? 'overview';
  return (
    <Signed.Provider value={session}>
      <button type="button" class="skip" onClick={toContent}>
        Skip to the content
      </button>
      <header>
        <strong>Spindle</strong>
        <span class="who">
          {session.operator} ({session.role})
        </span>
        <button type="button" class="quiet" onClick={onSignOut}>
          Sign out
        </button>
      </header>
      <nav class="rooms" aria-label="Console">
        <ul>
          {PAGES.filter(({ isListed }) => isListed).map(({ path, title }) => (
            <li key={path}>
              <a href={linkTo([path])} aria-current={here === path ? 'page' : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <Page />
    </Signed.Provider>
  );
}

/** No link: the address names a page, and stays. */
function toContent(): void {
  document.querySelector<HTMLElement>('main h1')?.focus();
}

function App() {
  const [session, setSession] = useState<Schemas['Session'] | null>();
  const begin = useCallback((begun: Schemas['Session']): void => {
    useToken(begun.csrfToken ?? '', () => setSession(null));
    setSession(begun);
  }, []);
  useEffect(() => {
    bodyOf(api.GET('/session', {})).then(begin, (error: unknown) => {
      if (!(error instanceof ApiFault)) throw error;
      setSession(null);
    });
  }, [begin]);
  if (session === undefined) return null;
  if (session === null) return <SignIn onSigned={begin} />;
  const signOut = async (): Promise<void> => {
    await bodyOf(api.DELETE('/session', {})).catch(() => {});
    setSession(null);
  };
  return <Shell session={session} onSignOut={signOut} />;
}

render(<App />, document.getElementById('app')!);
