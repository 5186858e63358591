import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomOf } from '../support/randomOf.ts'
import { BlobRules } from './blobRules.ts'
import { cut, type Cut, imageWith } from './cut.ts'
import type { Step } from './operations.ts'
import { diskOf, type Recording, replay } from './recording.ts'
import { Reference } from './reference.ts'
import { reopen } from './reopen.ts'
import { checkEngines, checkWholeService, clearAway, layOut, type Problem, type State } from './stateCheck.ts'

export interface Asked {
  readonly recording: Recording
  readonly seed: number
  /** The numbers of the states, from 0. A number is the same state whatever the others are. */
  readonly states: readonly number[]
  /** Every so many states, the whole service is started, too. */
  readonly serviceEvery: number
  /** Receives the states with findings. */
  readonly keepDir: string
  /** Ends after as many findings; default: never. */
  readonly mostFindings?: number
  readonly report: (line: string) => void
}

export interface Finding extends Problem {
  readonly state: number
  /** The changes that did not survive whole. */
  readonly dropped: readonly string[]
  /** A copy of the state. */
  readonly kept: string
}

export interface Checked {
  readonly states: number
  /** States on which the whole service was started. */
  readonly services: number
  readonly findings: readonly Finding[]
}

type Random = (below: number) => number

/** Memory is faster than a disk: what survives a cut is decided by the model. */
const FAST = '/dev/shm'

/** Gives each state of a seed numbers of its own. */
const SPREAD = 0x9e3779b1

const REPORT_EVERY = 250

/** Findings that are kept. More of them would fill the memory. */
const KEPT = 20

/** Makes one state again, and passes it to `use`. */
export const remake = async (
  {
    recording,
    seed,
    state,
  }: { readonly recording: Recording; readonly seed: number; readonly state: number },
  use: (state: State) => Promise<void>,
): Promise<void> => {
  const disk = diskOf(recording)
  const cuts = cutsOf({ recording, seed, states: [state] })
  await replay(recording, disk, async ({ step, answered }) => {
    for (const { random } of cuts.get(step) ?? []) {
      const { image } = cut(disk, random)
      await use({ disk, image, answered, ledger: recording.ledger.asOf(answered) })
    }
  })
}

/** Cuts the power of a recorded service in many moments, opens what is left, and compares it with what was acknowledged. */
export const checkPowerCuts = async (asked: Asked): Promise<Checked> => {
  const { recording, report } = asked
  const work = mkdtempSync(join(existsSync(FAST) ? FAST : tmpdir(), 'svc-crash-'))
  const rules = new BlobRules(recording)
  const reference = await referenceOf(recording, work)
  const cuts = cutsOf(asked)
  const findings: Finding[] = []
  let [states, services] = [0, 0]
  const disk = diskOf(recording)
  rules.noteAll(disk)

  const check = async (state: State, number: number, { dropped, image }: Cut): Promise<void> => {
    const dir = join(work, `state-${number}`)
    const known = { recording, reference, rules }
    let problem = await checkEngines(state, known, layOut(image, recording, dir))
    states++
    if (problem === null && number % asked.serviceEvery === 0) {
      clearAway(dir)
      problem = await checkWholeService(state, layOut(image, recording, dir))
      services++
    }
    clearAway(dir)
    if (problem !== null) {
      const kept = join(asked.keepDir, `state-${number}`)
      const finding = { ...problem, state: number, dropped: dropped(), kept }
      if (findings.length < KEPT) keep(image, recording, finding)
      findings.push(finding)
      report(describe(finding, asked))
    }
    if (states % REPORT_EVERY === 0)
      report(`${states} of ${asked.states.length} states, ${services} services, ${findings.length} findings`)
  }

  try {
    await replay(recording, disk, async ({ step, taken, answered }) => {
      if (taken.type === 'begin') rules.note(disk, taken.operation)
      for (const { number, random } of cuts.get(step) ?? []) {
        if (findings.length >= (asked.mostFindings ?? Infinity)) return
        const made = cut(disk, random)
        const ledger = recording.ledger.asOf(answered)
        await check({ disk, image: made.image, answered, ledger }, number, made)
      }
    })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return { states, services, findings }
}

/** The moments of the cuts. Half of them follow a reply at once, when the most is promised and the least is durable. */
const cutsOf = ({ recording, seed, states }: Pick<Asked, 'recording' | 'seed' | 'states'>) => {
  const steps = recording.lives.flatMap((life): readonly Step[] => life.steps)
  const replies = steps.flatMap((step, at) =>
    step.type === 'begin' && step.operation.kind === 'reply' ? [at] : [],
  )
  const cuts = new Map<number, { readonly number: number; readonly random: Random }[]>()
  for (const number of states) {
    const random = randomOf(seed + Math.imul(number + 1, SPREAD))
    const reply = random(2) === 0 ? replies[random(Math.max(replies.length, 1))] : undefined
    const step = reply === undefined ? random(steps.length) : Math.min(reply + random(4), steps.length - 1)
    cuts.set(step, [...(cuts.get(step) ?? []), { number, random }])
  }
  return cuts
}

/** Reads the log that the recorded service has left. */
const referenceOf = async (recording: Recording, work: string): Promise<Reference> => {
  const disk = diskOf(recording)
  await replay(recording, disk, () => {})
  const dir = join(work, 'reference')
  const reopened = await reopen(
    layOut(
      imageWith(disk, () => true),
      recording,
      dir,
    ),
  )
  clearAway(dir)
  if (reopened.type !== 'started')
    throw new Error(`Expected a whole recording, got ${JSON.stringify(reopened)}`)
  const reference = new Reference(reopened.facts, recording.ledger)
  const unproved = reference.unproved
  if (unproved.length > 0)
    throw new Error(`Expected a fact for each acknowledged write, got none for ${unproved.join(', ')}`)
  return reference
}

const keep = (image: Cut['image'], recording: Recording, { kept, dropped }: Finding): void => {
  rmSync(kept, { recursive: true, force: true })
  layOut(image, recording, kept)
  writeFileSync(join(kept, 'dropped'), dropped.join('\n'))
}

/** The most lines about one finding. All of them are in its folder. */
const LINES = 12

const describe = ({ type, state, text, dropped, kept }: Finding, { seed, recording }: Asked): string => {
  const more = dropped.length > LINES ? [`… and ${dropped.length - LINES} more`] : []
  const again = `npm run crash power -- --recording ${recording.dir} --seed ${seed} --state ${state}`
  return [`${type}: ${text}`, `  ${again}`, `  kept in ${kept}; not survived:`]
    .concat([...dropped.slice(-LINES), ...more].map((line) => `    ${line}`))
    .join('\n')
}
