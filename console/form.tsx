/** Forms: labeled inputs, confirmation questions, and the result of the submitted action. */
import { type ComponentChildren, createContext, type FunctionComponent } from 'preact';
import { useContext, useRef, useState } from 'preact/hooks';
import { type AnswerOf, type Change, type Endpoint, send } from '../src/api/client/views/view.js';
import { api, bodyOf } from './api.js';
import { type Question, useQuestions } from './dialog.js';
import { go } from './router.js';
import { Fault } from './ui.js';

/** An HTML input element whose type is chosen at run time. */
const Input = 'input' as unknown as FunctionComponent<Record<string, unknown>>;

/** An input field with its label. */
export function Field(props: {
  readonly label: string;
  readonly name: string;
  readonly type?: 'text' | 'number' | 'date' | 'datetime-local' | 'email';
  readonly value?: string | number | undefined;
  readonly required?: boolean;
  readonly hint?: string;
  readonly options?: readonly string[];
  readonly rows?: number;
  /** Suggested values while the operator types. The field accepts other values as well. */
  readonly proposals?: readonly { readonly value: string; readonly label: string }[];
}) {
  const { label, name, type = 'text', value, required, hint, options, rows, proposals } = props;
  const described = hint === undefined ? {} : { 'aria-describedby': `${name}-hint` };
  const common = { name, required: required === true, ...described };
  const list = proposals === undefined ? {} : { list: `${name}-proposals` };
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: each branch has one control
    <label class="field">
      <span>{label}</span>
      {options !== undefined ? (
        <select {...common} defaultValue={String(value ?? options[0])}>
          {options.map((option) => (
            <option key={option} value={option} selected={option === value}>
              {option === '' ? 'all' : option}
            </option>
          ))}
        </select>
      ) : rows !== undefined ? (
        <textarea {...common} rows={rows} defaultValue={String(value ?? '')} />
      ) : (
        <Input
          {...{ ...common, ...list, type, defaultValue: String(value ?? '') }}
          autocomplete="off"
          step={type === 'datetime-local' ? undefined : 'any'}
        />
      )}
      {proposals === undefined ? null : (
        <datalist id={`${name}-proposals`}>
          {proposals.map((proposal) => (
            <option key={proposal.value} value={proposal.value} label={proposal.label} />
          ))}
        </datalist>
      )}
      {hint === undefined ? null : <small id={`${name}-hint`}>{hint}</small>}
    </label>
  );
}

export interface Range {
  readonly days: number;
  readonly byHour?: boolean;
}

/** Selects the time range of a chart. */
export const RangeField = ({
  ranges,
  shown,
  onChange,
}: {
  readonly ranges: readonly Range[];
  readonly shown: Range;
  readonly onChange: (range: Range) => void;
}) => (
  <label class="field range">
    <span>Range</span>
    <select
      value={String(ranges.indexOf(shown))}
      onChange={(event) => onChange(ranges[Number(event.currentTarget.value)]!)}
    >
      {ranges.map(({ days, byHour }, place) => (
        <option key={days} value={place}>
          {days} days{byHour === true ? ', by hour' : ''}
        </option>
      ))}
    </select>
  </label>
);

type Values = Record<string, string>;

/** Context with the function that takes the outcome of a form in a dialog. Undefined: the form shows it. */
export const FormDone = createContext<((outcome: ComponentChildren) => void) | undefined>(undefined);

/** A form that shows the result of its action. */
export function Form(props: {
  readonly label: string;
  readonly button: string;
  /**
   * Performs the action and returns the message to show. `values.reason` is the reason that the operator
   * entered in a question.
   *
   * @throws ApiFault if the service refuses the action or does not respond
   */
  readonly act: (values: Values, form: HTMLFormElement) => Promise<ComponentChildren>;
  readonly children?: ComponentChildren;
  readonly isInline?: boolean;
  /** True for a dangerous action. The button is styled accordingly. */
  readonly isDangerous?: boolean;
  /** Questions to confirm one after the other before the action. Absent: the action is performed at once. */
  readonly confirm?: Question | ((values: Values) => readonly Question[]);
  readonly keepsValues?: boolean;
}) {
  const { label, button, act, children, isInline, isDangerous, confirm, keepsValues } = props;
  const [state, setState] = useState<{ busy?: boolean; done?: ComponentChildren; error?: unknown }>({});
  const isBusy = useRef(false);
  const ask = useQuestions();
  const finish = useContext(FormDone);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    if (isBusy.current) return;
    isBusy.current = true;
    try {
      const entries = [...new FormData(form)].filter(([, value]) => typeof value === 'string');
      const values = Object.fromEntries(entries) as Values;
      const questions =
        typeof confirm === 'function' ? confirm(values) : confirm === undefined ? [] : [confirm];
      const consent = await ask(questions);
      if (consent === undefined) return;
      setState({ busy: true });
      const done = await act(consent.reason === '' ? values : { ...values, reason: consent.reason }, form);
      setState(finish === undefined ? { done } : {});
      if (keepsValues !== true) form.reset();
      finish?.(done);
    } catch (error) {
      setState({ error });
    } finally {
      isBusy.current = false;
    }
  };
  return (
    <form class={isInline === true ? 'inline' : ''} aria-label={label} onSubmit={submit}>
      {children}
      <button type="submit" class={isDangerous === true ? 'danger' : ''} disabled={state.busy === true}>
        {button}
      </button>
      <div class="outcome" role="status">
        {state.done}
      </div>
      <Fault error={state.error} />
    </form>
  );
}

/** @param path path of the list's page */
export const StatusFilter = ({
  path,
  options,
  status,
}: {
  readonly path: string;
  readonly options: readonly string[];
  readonly status: string;
}) => (
  <Form
    label="Filter"
    button="Show"
    isInline
    keepsValues
    act={async ({ status: wanted }) => {
      go([path], { status: wanted! });
      return null;
    }}
  >
    <Field label="Status" name="status" options={options} value={status} />
  </Form>
);

export const questionOf = (
  {
    asks,
    consequence,
    button,
    confirm = button,
    isHarmless,
  }: Omit<Change<never>, 'endpoint' | 'body' | 'done'>,
  name: string,
): Question => ({
  title: `${asks} ${name}?`,
  consequence,
  button: confirm,
  isDangerous: isHarmless !== true,
  asksReason: true,
});

/** A form for a change of a view: it asks, sends the request and shows what was done. */
export function ChangeForm<E extends Endpoint>(props: {
  readonly change: Change<E>;
  /** The object in the question. */
  readonly name: string;
  readonly path: object;
  readonly typed?: string;
  readonly isInline?: boolean;
  /** Returns what is shown in place of the change's own outcome, if it returns anything. */
  readonly onDone: (answer: AnswerOf<E>) => unknown;
}) {
  const { change, name, path, typed, isInline = false, onDone } = props;
  const { endpoint, body, button, done } = change;
  const question = questionOf(change, name);
  return (
    <Form
      label={`${change.asks} ${name}`}
      {...{ button, isInline }}
      isDangerous={question.isDangerous === true}
      confirm={typed === undefined ? question : { ...question, typed }}
      act={async ({ reason }) => {
        const answer = await bodyOf(send(api, endpoint, { path, body, reason }));
        return (onDone(answer) as ComponentChildren) ?? (typeof done === 'string' ? done : done(answer));
      }}
    />
  );
}
