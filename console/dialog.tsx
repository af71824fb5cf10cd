/** Confirmation dialogs, which name the object and the consequence of an action. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useAddressChange } from './router.js';

export interface Question {
  /** Question with the name of the object, such as `Suspend Classic Three?` */
  readonly title: string;
  /** Consequence of the action: what happens, to whom, and whether it can be undone. */
  readonly consequence: ComponentChildren;
  /** Label of the button that confirms the action. */
  readonly button: string;
  readonly isDangerous?: boolean;
  /**
   * Text that the operator must type to confirm an action that cannot be undone, usually the name of the
   * object.
   */
  readonly typed?: string;
  /** True to ask for a reason, which is written to the audit log. */
  readonly asksReason?: boolean;
}

export interface Consent {
  /** Reason that the operator entered; empty if the question did not ask for a reason. */
  readonly reason: string;
}

interface Asked extends Question {
  readonly onAnswer: (consent: Consent | undefined) => void;
  /** Aborted when the page that asks is left. The dialog closes then, as if the operator had canceled. */
  readonly left: AbortSignal;
}

const host: { show: (asked: Asked) => void } = { show: ({ onAnswer }) => onAnswer(undefined) };

/** Asks a question. Resolves with undefined if the operator cancels or leaves the page. */
const ask = (question: Question, left: AbortSignal): Promise<Consent | undefined> =>
  new Promise((onAnswer) => {
    if (left.aborted) onAnswer(undefined);
    else host.show({ ...question, onAnswer, left });
  });

/**
 * Asks several questions one after the other. Returns the reason that the operator entered, or undefined if
 * the operator canceled a question or left the page.
 */
async function askAll(questions: readonly Question[], left: AbortSignal): Promise<Consent | undefined> {
  let reason = '';
  for (const question of questions) {
    const consent = await ask(question, left);
    if (consent === undefined) return undefined;
    reason ||= consent.reason;
  }
  return { reason };
}

/**
 * Returns a function that asks questions for this component. The dialogs are rendered outside of the page, so
 * they would outlive it: the questions are withdrawn when the address changes or the component is removed.
 */
export function useQuestions(): (questions: readonly Question[]) => Promise<Consent | undefined> {
  const asking = useRef<AbortController | undefined>(undefined);
  const withdraw = (): void => asking.current?.abort();
  useAddressChange(withdraw);
  useEffect(() => withdraw, []);
  return (questions) => {
    asking.current = new AbortController();
    return askAll(questions, asking.current.signal);
  };
}

/** Shows the current question. A page contains exactly one DialogHost. */
export function DialogHost() {
  const [asked, setAsked] = useState<Asked | undefined>();
  useEffect(() => {
    host.show = (next) => {
      next.left.addEventListener('abort', () => {
        setAsked((shown) => (shown === next ? undefined : shown));
        next.onAnswer(undefined);
      });
      setAsked((before) => {
        before?.onAnswer(undefined);
        return next;
      });
    };
  }, []);
  if (asked === undefined) return null;
  const answer = (consent: Consent | undefined): void => {
    setAsked(undefined);
    asked.onAnswer(consent);
  };
  return <QuestionDialog key={asked.title} question={asked} onAnswer={answer} />;
}

function QuestionDialog({
  question: { title, consequence, button, isDangerous, typed, asksReason },
  onAnswer,
}: {
  readonly question: Question;
  readonly onAnswer: Asked['onAnswer'];
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typedNow, setTypedNow] = useState('');
  // Closing the dialog before it is removed lets the browser restore the focus.
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const reason = new FormData(event.currentTarget as HTMLFormElement).get('reason');
    onAnswer({ reason: typeof reason === 'string' ? reason.trim() : '' });
  };
  const isLocked = typed !== undefined && typedNow !== typed && typedNow.trim() !== typed;
  return (
    <dialog
      ref={dialog}
      class={isDangerous === true ? 'ask danger' : 'ask'}
      aria-labelledby="ask-title"
      aria-describedby="ask-consequence"
      onCancel={(event) => {
        event.preventDefault();
        onAnswer(undefined);
      }}
    >
      <form method="dialog" aria-label={title} onSubmit={submit}>
        <h2 id="ask-title">{title}</h2>
        <div id="ask-consequence">{consequence}</div>
        {asksReason === true ? (
          <label class="field">
            <span>Reason</span>
            <input name="reason" required maxLength={500} pattern=".*\S.*" autocomplete="off" />
            <small>Kept in the audit log</small>
          </label>
        ) : null}
        {typed === undefined ? null : (
          <label class="field">
            <span>
              Type <code>{typed}</code> to confirm
            </span>
            <input
              name="typed"
              required
              autocomplete="off"
              value={typedNow}
              onInput={(event) => setTypedNow(event.currentTarget.value)}
            />
          </label>
        )}
        <div class="choices">
          <button type="button" class="quiet" onClick={() => onAnswer(undefined)}>
            Cancel
          </button>
          <button type="submit" class={isDangerous === true ? 'danger' : ''} disabled={isLocked}>
            {button}
          </button>
        </div>
      </form>
    </dialog>
  );
}
