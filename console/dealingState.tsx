/** The switch of dealing for all partners, which all pages know, and the banner that says that it is off. */
import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { api, bodyOf, type Schemas } from './api.js';
import { time } from './format.js';
import { type Loaded, useLoad } from './load.js';
import { linkTo } from './router.js';

const EVERY_MS = 5000;

type State = Loaded<Schemas['DealingResponse']>;

const Dealt = createContext<State>({ data: undefined, error: undefined, reload: () => {} });

export function DealingState({ children }: { readonly children: ComponentChildren }) {
  const loaded = useLoad(() => bodyOf(api.GET('/dealing', {})), [], EVERY_MS);
  return <Dealt.Provider value={loaded}>{children}</Dealt.Provider>;
}

export const useDealing = (): State => useContext(Dealt);

export function DealingBanner() {
  const { data } = useDealing();
  if (data?.state !== 'OFF') return null;
  const { changedAt, actor, reason } = data;
  return (
    <p class="banner" role="alert">
      <strong>Dealing is OFF for all partners.</strong> All spins, tickets and deals are refused since{' '}
      {time(changedAt)} UTC
      {actor === null ? '' : `, by ${actor}`}
      {reason === null ? '' : `: ${reason}`}. <a href={linkTo(['dealing'])}>Open Dealing</a>
    </p>
  );
}
