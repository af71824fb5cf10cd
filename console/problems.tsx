/** The problems of the service, which all pages know, also while nobody can sign in. */
import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { ApiFault, type Schemas } from './api.js';
import { time } from './format.js';
import { useLoad } from './load.js';
import { Fault } from './ui.js';

type Problem = Schemas['Problem'];

const EVERY_MS = 5000;
const ANSWERS_WITHIN_MS = 10_000;

const SILENT: Problem = {
  name: 'service-away',
  effect: 'SPINS_REFUSED',
  message: 'The service does not respond',
  since: new Date().toISOString(),
  spins: 'Whether spins are dealt is not known',
  help: 'Check your connection to the service, and whether it runs',
};

/** Reads /statusz, which needs no key and no store. It has no problems if a proxy hides the path. */
async function read(): Promise<readonly Problem[]> {
  let answer: Response;
  try {
    answer = await fetch('/statusz', { cache: 'no-store', signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) });
  } catch {
    return [{ ...SILENT, since: new Date().toISOString() }];
  }
  const body = (await answer.json().catch(() => ({}))) as { problems?: readonly Problem[] };
  return body.problems ?? [];
}

const Known = createContext<readonly Problem[]>([]);

export function ProblemsState({ children }: { readonly children: ComponentChildren }) {
  const { data } = useLoad(read, [], EVERY_MS);
  return <Known.Provider value={data ?? []}>{children}</Known.Provider>;
}

/** Returns the problems of the service, the worst first. */
export const useProblems = (): readonly Problem[] => useContext(Known);

export function ProblemLine({ of }: { readonly of: Problem }) {
  return (
    <>
      <strong>{of.message}</strong> (since {time(of.since)} UTC). {of.spins}. {of.help}.
    </>
  );
}

/** Names the problems that stop spins or the work behind them. */
export function ProblemsBanner() {
  const problems = useProblems().filter(({ effect }) => effect !== 'ATTENTION');
  return (
    <>
      {problems.map((problem) => (
        <p key={problem.name + problem.message} class="banner" role="alert">
          <ProblemLine of={problem} />
        </p>
      ))}
    </>
  );
}

/** Returns whether the service, and not the key or session, is the reason for an error. */
export const isOutage = (error: unknown): boolean =>
  error instanceof ApiFault && (error.status === 0 || error.status >= 500);

/**
 * Says why nobody can sign in at the moment.
 *
 * @param kept what stays valid, as the end of a sentence
 */
export function Outage({ error, kept }: { readonly error: unknown; readonly kept: string }) {
  const ofPostgres = useProblems().find(({ name }) => name.startsWith('postgres-'));
  if (ofPostgres === undefined) return <Fault error={error} />;
  return (
    <p class="fault" role="alert">
      {ofPostgres.message}; {kept}.
    </p>
  );
}
