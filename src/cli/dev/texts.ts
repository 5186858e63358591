import { readFileSync } from 'node:fs'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { BundleFailed, type BundleMessage, messageAbout, textOfMessage } from '../../bundle/bundle.ts'
import type { BuildFunction, Webhook } from '../../client/api.ts'
import { clock } from '../../clock.ts'
import { messageOf } from '../../errors.ts'
import { onOneLine } from '../../logger.ts'
import { triggersText } from '../bundleTexts.ts'
import type { Printed } from '../command.ts'
import { hasTrigger } from '../deployBundle.ts'
import { errorText } from '../runText.ts'
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
    text: lines([
      ...messages.map((message) => indented(textOfMessage(message))),
      `         ${onOneLine(`${after}; ${next}${where}`)}`,
    ]).replace(/^ {9}/, `${time()} `),
  }
}

const indented = (text: string): string =>
  text
    .split('\n')
    .map((line) => `         ${line}`)
    .join('\n')

/** A message of the service, with the line of the project that it names: `src/a.ts:3:7: …`, or `a.js: name: …`. */
const messageIn = (text: string, folder: string, modules: readonly string[]): BundleMessage => {
  const [, output, about = ''] = /^(\S+)\.js: (.*)$/s.exec(text) ?? []
  const module = output === undefined ? undefined : sourceOf(output, modules)
  if (module !== undefined) {
    const [, name] = /^(\S+): /.exec(about) ?? []
    return name === undefined
      ? messageAbout(module, about)
      : declarationIn(folder, { file: module, name, text: about })
  }
  const [, before = '', file, line, column, after = ''] =
    /^(.*?)([^\s():]+\.[cm]?[jt]sx?):(\d+)(?::(\d+))?:?\s*(.*)$/s.exec(text) ?? []
  if (file === undefined) return messageAbout(null, text)
  const sourceLine = sourceLineOf(folder, file, Number(line))
  if (sourceLine === null) return messageAbout(null, text)
  return {
    text: `${before}${after}`.trim(),
    file,
    line: Number(line),
    column: column === undefined ? null : Number(column),
    sourceLine,
  }
}

/** The module of a file of the build, which lacks the folder of the sources and its extension. */
const sourceOf = (output: string, modules: readonly string[]): string | undefined =>
  modules
    .filter((path) => `/${path.replace(/\.[^.]+$/, '')}`.endsWith(`/${output}`))
    .sort((a, b) => a.length - b.length)[0]

/** A message about an exported function, at its declaration. */
const declarationIn = (
  folder: string,
  { file, name, text }: { readonly file: string; readonly name: string; readonly text: string },
): BundleMessage => {
  const declared = new RegExp(`(?<=(?:const|let|var|function\\*?|class)\\s+)${RegExp.escape(name)}(?![\\w$])`)
  const sources = readFileSync(join(folder, file), 'utf8').split('\n')
  const index = sources.findIndex((line) => declared.test(line))
  if (index < 0) return messageAbout(file, text)
  const sourceLine = (sources[index] ?? '').slice(0, MAX_SOURCE_LINE)
  return { text, file, line: index + 1, column: sourceLine.search(declared) + 1, sourceLine }
}

/** A line of a file in the folder. Other files are not read, because the service decides the name. */
const sourceLineOf = (folder: string, file: string, line: number): string | null => {
  const path = relative(folder, resolve(folder, file))
  if (path.startsWith('..') || isAbsolute(path)) return null
  try {
    return readFileSync(join(folder, path), 'utf8').split('\n')[line - 1]?.slice(0, MAX_SOURCE_LINE) ?? null
  } catch {
    return null // it is not a file of the project
  }
}

/** Characters of a source line that are shown. */
const MAX_SOURCE_LINE = 200

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
