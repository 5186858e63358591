import { isDeepStrictEqual } from 'node:util'
import { type Excuse, Refusal, type Reply, type Subject } from './subject.ts'

/** A command of one moment with its reply; null if its node died before it replied. */
export interface Done<Command> {
  readonly command: Command
  readonly reply: Reply | null
  /** The index of a command that was answered before this one began. */
  readonly after?: number
}

interface Point<State> {
  readonly state: State
  readonly left: readonly number[]
}

/**
 * Returns every state that the model can have after commands of one moment: one for each order in which their replies
 * are right. There is none if the service did something that no order explains.
 */
export const statesAfter = <State, Command>(
  subject: Subject<State, Command>,
  states: readonly State[],
  done: readonly Done<Command>[],
): State[] => {
  const found = new Map<string, State>()
  const seen = new Set<string>()
  const excuses = done.map(({ command }, i) => excuseOf(subject, command, done.toSpliced(i, 1)))
  const visit = ({ state, left }: Point<State>): void => {
    const key = `${left.join()} ${textOf(state)}`
    if (seen.has(key)) return
    seen.add(key)
    if (left.length === 0) found.set(key, state)
    for (const i of left) {
      const { command, reply, after } = done[i] as Done<Command>
      if (after !== undefined && left.includes(after)) continue
      const rest = left.filter((other) => other !== i)
      for (const next of nextOf(subject, state, command, reply, excuses[i] ?? {}))
        visit({ state: next, left: rest })
    }
  }
  for (const state of states) visit({ state, left: done.map((_, i) => i) })
  return [...found.values()]
}

/** The same text for equal states, in whatever order their keys were added. */
const textOf = (state: unknown): string =>
  JSON.stringify(state, (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )

/** The states to which a command with this reply can lead. */
const nextOf = <State, Command>(
  subject: Subject<State, Command>,
  state: State,
  command: Command,
  reply: Reply | null,
  excuse: Excuse<State>,
): State[] => {
  const stepped = stepOf(subject, state, command)
  if (reply === null) return [state, stepped.state]
  const next = isDeepStrictEqual(stepped.reply, reply) ? [stepped.state] : []
  if ('refused' in reply && excuse.refused?.includes(reply.refused)) {
    next.push(state, stepped.state)
    for (const leave of excuse.leaves ?? []) {
      const left = structuredClone(state)
      leave(left)
      next.push(left)
    }
  }
  if ('ok' in reply && excuse.idle) next.push(state)
  return next
}

/** The model's reply to a command and its state afterwards. The given state is not changed. */
export const stepOf = <State, Command>(
  subject: Subject<State, Command>,
  state: State,
  command: Command,
): { readonly state: State; readonly reply: Reply } => {
  const next = structuredClone(state)
  try {
    return { reply: { ok: subject.step(next, command) ?? null }, state: next }
  } catch (error) {
    if (error instanceof Refusal) return { reply: { refused: error.code }, state: next }
    throw error
  }
}

const excuseOf = <State, Command>(
  subject: Subject<State, Command>,
  command: Command,
  others: readonly Done<Command>[],
): Excuse<State> =>
  others.reduce<Excuse<State>>(
    (excuse, other) => ({ ...excuse, ...subject.excuse(command, other.command) }),
    {},
  )
