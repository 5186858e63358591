import { BundleFailed, type BundleMessage, textOfMessage } from '../../bundle/bundle.ts'
import type { BuildFunction, Webhook } from '../../client/api.ts'
import { clock } from '../../clock.ts'
import { messageOf } from '../../errors.ts'
import { onOneLine } from '../../logger.ts'
import { triggersText } from '../bundleTexts.ts'
import type { Printed } from '../command.ts'
import { hasTrigger } from '../deployBundle.ts'
import { errorText } from '../runText.ts'
import { messageIn } from '../sourcePlaces.ts'
import type { Paint } from '../terminal.ts'
import type { LiveBuild } from './deployLive.ts'
import type { EndedRun } from './tail.ts'

const time = (): string => new Date(clock.now()).toTimeString().slice(0, 8)

const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join('')

/** What can be reached, printed when the service is ready. */
export const readyText = (given: {
  readonly url: string
  readonly folder: string
  readonly data: string | null
  readonly ms: number
}): Printed => ({
  json: { type: 'ready', ...given },
  text: lines([
    `svc is ready in ${given.ms} ms; Ctrl-C stops it`,
    `  API        ${onOneLine(given.url)}`,
    `  dashboard  ${onOneLine(given.url)}/ui (npx svc open signs you in)`,
    `  docs       ${onOneLine(given.url)}/docs`,
    ...(given.data === null ? [] : [`  data       ${onOneLine(given.data)}`]),
  ]),
})

/** The functions of the first live build, and what to try with them. */
export const functionsText = (
  project: string,
  functions: readonly BuildFunction[],
  webhooks: readonly Webhook[],
): Printed => {
  const urlOf = ({ ns, var: name }: BuildFunction): string =>
    webhooks.find((webhook) => webhook.ns === ns && webhook.var === name)?.url ?? ''
  const commands = commandsFor(functions)
  return {
    json: {
      type: 'functions',
      project,
      functions: functions.map((fn) => (fn.webhook ? { ...fn, url: urlOf(fn) } : fn)),
      commands,
    },
    text: lines([
      `  project    ${onOneLine(project)}`,
      ...functions.flatMap((fn) => [
        `    ${onOneLine(fn.fn)}  ${onOneLine(triggersText(fn))}`,
        ...(fn.webhook ? [`      ${onOneLine(`${fn.webhook.method} ${urlOf(fn)}`)}`] : []),
      ]),
      ...commands.map((text, index) => `  ${index === 0 ? 'try' : '   '}        ${onOneLine(text)}`),
    ]),
  }
}

const commandsFor = (functions: readonly BuildFunction[]): readonly string[] => {
  const event = functions.find(({ on_event }) => on_event !== undefined)?.on_event
  const plain = functions.find((fn) => !hasTrigger(fn) && !fn.mcp) ?? functions[0]
  return [
    event === undefined ? 'npx svc follow' : `npx svc send ${quoted(event)} '{}'`,
    ...(plain ? [`npx svc run ${quoted(plain.fn)}`] : []),
    'npx svc runs',
  ]
}

/** A word of a shell command. */
const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/** A save that became the live build. */
export const liveText = (
  { build_id, changes, warnings }: LiveBuild,
  { paths, ms }: { readonly paths: readonly string[]; readonly ms: number },
): Printed => {
  const shown = [
    ...changesText('+', changes.added),
    ...changesText('-', changes.removed),
    ...changesText('~', changes.changed),
  ]
  const what = paths.length === 0 ? 'started' : `saved ${savedText(paths)}`
  return {
    json: { type: 'live', build_id, ms, paths, changes, warnings },
    text: lines([
      onOneLine(`${time()} ${what} → ${build_id} live in ${ms} ms  ${shown.join(', ')}`.trimEnd()),
      ...warnings.map((warning) => indented(`warning: ${warning.split('\n').map(onOneLine).join('\n')}`)),
    ]),
  }
}

/** Functions of one kind of change that are named. */
const MAX_CHANGES = 8

const changesText = (sign: string, fns: readonly string[]): readonly string[] => [
  ...fns.slice(0, MAX_CHANGES).map((fn) => `${sign} ${fn}`),
  ...(fns.length > MAX_CHANGES ? [`${sign} ${fns.length - MAX_CHANGES} more`] : []),
]

const savedText = ([first = '', ...others]: readonly string[]): string =>
  others.length === 0 ? first : `${first} and ${others.length} more`

/** An upload that is not complete after some seconds. */
export const slowText = (): Printed => ({
  json: { type: 'slow' },
  text: lines([
    `${time()} the service still loads the build: a loop or a top-level await of a module may not end; the next save replaces it`,
  ]),
})

/** The service cannot work at the moment, such as on a full disk; with null, it can again. */
export const stalledText = (reason: string | null, data: string): Printed =>
  reason === null
    ? { json: { type: 'resumed' }, text: lines([`${time()} the service continues`]) }
    : {
        json: { type: 'stalled', reason, data },
        text: lines([
          onOneLine(`${time()} the service waits: ${reason}`),
          `         ${onOneLine(`its data is in ${data}; make room there if the disk is full. It continues by itself`)}`,
        ]),
      }

/** Other commands do not find the service, because its file cannot be written. */
export const unannouncedText = (reason: string, variables: readonly string[]): Printed => ({
  json: { type: 'unannounced', reason, variables },
  text: lines([
    onOneLine(`${time()} other commands do not find this service: ${reason}`),
    `         ${onOneLine(`set ${variables.join(' ')} for them`)}`,
  ]),
})

export const secretsText = (set: readonly string[], removed: readonly string[]): Printed => ({
  json: { type: 'secrets', set, removed },
  text: lines([
    onOneLine(
      `${time()} context variables  ${[...set.map((key) => `+ ${key}`), ...removed.map((key) => `- ${key}`)].join(', ')}`,
    ),
  ]),
})

/** Lines of the file of context variables that cannot become one. The code of the save is live. */
export const wrongSecretsText = ({ messages }: BundleFailed, live: string | null): Printed => ({
  json: { type: 'failed', messages, live },
  text: failureText(messages, 'the context variables stay as they were; waiting for the next save'),
})

/** A save that did not become live. `live` is the build that remains, or null. `againMs`: when it is deployed again by itself. */
export const failedText = (
  error: unknown,
  {
    folder,
    modules,
    live,
    data,
    againMs,
  }: {
    readonly folder: string
    readonly modules: readonly string[]
    readonly live: string | null
    readonly data: string | null
    readonly againMs: number | null
  },
): Printed => {
  const messages =
    error instanceof BundleFailed ? error.messages : [messageIn(messageOf(error), folder, modules)]
  const after = live === null ? 'no build is live' : `${live} continues`
  const next = againMs === null ? 'waiting for the next save' : `the next attempt is in ${againMs / 1000} s`
  const where = againMs === null || data === null ? '' : `; the data of the service is in ${data}`
  return {
    json: { type: 'failed', messages, live },
    text: failureText(messages, `${after}; ${next}${where}`),
  }
}

const failureText = (messages: readonly BundleMessage[], next: string): string =>
  lines([
    ...messages.map((message) => indented(textOfMessage(message))),
    `         ${onOneLine(next)}`,
  ]).replace(/^ {9}/, `${time()} `)

const indented = (text: string): string =>
  text
    .split('\n')
    .map((line) => `         ${line}`)
    .join('\n')

/** `svc dev` prints its lines without colours. */
const plain: Paint = (_, text) => text

/** The trigger of a run without an event. A function with both may have been reached by either. */
const triggerOf = (cause: string, fn: BuildFunction | undefined): string => {
  if (cause !== 'call' || !fn || (fn.webhook && fn.mcp)) return cause
  return fn.webhook ? 'webhook' : fn.mcp ? 'tool' : cause
}

/** A run that has ended. `spec`: its function in the live build. */
export const runText = (ended: EndedRun, spec: BuildFunction | undefined): Printed => {
  const { run } = ended
  const cause = triggerOf(ended.cause, spec)
  const attempts = 1 + (spec?.retry?.attempts ?? 0)
  const { run_id, fn, status, attempt, start_time, stop_time, retry_at, error } = run
  const ms = stop_time === null ? null : Date.parse(stop_time) - Date.parse(start_time)
  const again =
    retry_at === null
      ? ''
      : `, again in ${Math.max(0, Date.parse(retry_at) - Date.parse(stop_time ?? retry_at))} ms`
  const counted =
    attempts > 1 || attempt > 1 ? `attempt ${attempt} of ${Math.max(attempt, attempts)}${again}` : ''
  const word = status === 'pending_retry' ? 'failed' : status
  const head = [
    `${time()} ${cause}`,
    fn ?? 'evaluated code',
    `${word}${ms === null ? '' : ` in ${ms} ms`}`,
    counted,
    run_id,
  ]
  return {
    json: { type: 'run', run_id, fn, cause, status, attempt, attempts, ms, retry_at, error: error ?? null },
    text: lines([
      onOneLine(head.filter((part) => part !== '').join('  ')),
      ...(error ? [indented(errorText(error, plain).trimEnd())] : []),
    ]),
  }
}
