/** Asks before something is done: a dialog that names the thing and the consequence. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Question {
  /** Names the thing, such as `Suspend Classic Three?` */
  readonly title: string;
  /** What follows, for whom, and whether it can be undone. */
  readonly consequence: ComponentChildren;
  /** What the button says. */
  readonly button: string;
  readonly isDangerous?: boolean;
  /** What has to be typed before: the name of the thing, where it can't be undone. */
  readonly typed?: string;
  /** Asks for a reason, which goes to the audit log. */
  readonly asksReason?: boolean;
}

export interface Consent {
  /** Empty where none was asked for. */
  readonly reason: string;
}

interface Asked extends Question {
  readonly onAnswer: (consent: Consent | undefined) => void;
}

const host: { show: (asked: Asked) => void } = { show: ({ onAnswer }) => onAnswer(undefined) };

/** @returns undefined where the operator would rather not */
const ask = (question: Question): Promise<Consent | undefined> =>
  new Promise((onAnswer) => host.show({ ...question, onAnswer }));

/** Asks one after the other. @returns the reason that one of them asked for; undefined where one was declined */
export async function askAll(questions: readonly Question[]): Promise<Consent | undefined> {
  let reason = '';
  for (const question of questions) {
    const consent = await ask(question);
    if (consent === undefined) return undefined;
    reason ||= consent.reason;
  }
  return { reason };
}

/** Shows one question at a time; a page has one of it. */
export function DialogHost() {
  const [asked, setAsked] = useState<Asked | undefined>();
  useEffect(() => {
    host.show = (next) =>
      setAsked((before) => {
        before?.onAnswer(undefined);
        return next;
      });
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
  // Before the dialog is taken away the browser gives the focus back to where it was.
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
              Type <code>{typed}</code> to go on
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
