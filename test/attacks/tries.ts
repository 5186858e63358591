import type { Run } from '../support/build.ts'
import type { Target } from './target.ts'

/** The outcome of one attempt inside a function. */
interface Tried {
  readonly error?: string
  readonly value?: unknown
}

/** The function runs each attempt, so that one failure does not end the others. */
const TRYING = (attempts: Readonly<Record<string, string>>) => `
  const attempts = {
    ${Object.entries(attempts)
      .map(([name, body]) => `${JSON.stringify(name)}: async (args: any) => { ${body} }`)
      .join(',\n')}
  }
  const inTime = (tried: Promise<any>) => Promise.race([
    tried,
    new Promise((_, reject) => setTimeout(() => reject(Object.assign(new Error('nothing happened'), { code: 'nothing' })), 3000)),
  ])
  export const attack = async (args: any) => {
    const outcomes: any = {}
    for (const [name, attempt] of Object.entries(attempts)) {
      try {
        outcomes[name] = { value: String((await inTime(attempt(args))) ?? null).slice(0, 200) }
      } catch (error: any) {
        outcomes[name] = { error: String(error?.code ?? error?.message ?? error).slice(0, 200) }
      }
    }
    return outcomes
  }
`

/**
 * Runs each attempt, the body of an async function with the parameter `args`, in one function of the attacker. An
 * attempt that returns anything but `undefined` or `null` went through. Resolves with how each one was refused.
 */
export const refuses = async (
  target: Target,
  attempts: Readonly<Record<string, string>>,
  args: Readonly<Record<string, unknown>> = {},
): Promise<string> => {
  const result = resultOf(await target.run(TRYING(attempts), args))
  const outcomes = Object.entries(result as Readonly<Record<string, Tried>>)
  const through = outcomes.filter(([, { value }]) => value !== undefined && value !== 'null')
  if (through.length > 0)
    throw new Error(
      `went through: ${through.map(([name, { value }]) => `${name} -> ${String(value)}`).join(' / ')}`,
    )
  return `refused: ${outcomes.map(([name, { error = 'nothing' }]) => `${name}: ${error}`).join(', ')}`
}

/** The result of a function that caught everything. */
export const resultOf = ({ status, result, error }: Run): unknown => {
  if (status === 'succeeded') return result
  throw new Error(`Expected the function to catch its errors, it ended ${status}: ${JSON.stringify(error)}`)
}
