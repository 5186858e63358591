import fc from 'fast-check'
import { type Excuse, refuse, type Subject } from '../subject.ts'
import { openProjects } from './projectsReal.ts'
import { PATHS, type ProjectsCommand, webhooksIn, type Zip } from './projectsSetup.ts'

interface Build {
  zip: Zip
  live: boolean
}

interface Project {
  name: string
  network: readonly string[] | null
  builds: Record<string, Build>
  /** The live builds, in the order of their uploads. */
  lives: string[]
  gone: Record<string, true>
  deployed: string | null
}

/** A project that was deleted is null. */
export type ProjectsState = Record<string, Project | null>

const newProject = (name: string): Project => ({
  name,
  network: null,
  builds: {},
  lives: [],
  gone: {},
  deployed: null,
})

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/
const KEPT_LIVE = 5

const project = fc.constantFrom('p0', 'p1', 'p2', 'p3')
const name = fc.constantFrom('alpha', 'beta', 'gamma', '-wrong')
const build = fc.constantFrom('b0', 'b1', 'b2', 'b3', 'b4', 'b5', 'b6')
const of = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary })
const op = <const T extends string>(value: T) => fc.constant(value)

export const projects: Subject<ProjectsState, ProjectsCommand> = {
  name: 'projects',
  initial: {
    p0: { ...newProject('zero'), builds: { b0: { zip: 'z1', live: false } }, deployed: 'b0' },
    p1: { ...newProject('one'), builds: { b1: { zip: 'z3', live: false } } },
  },

  commands: fc.oneof(
    of(5, fc.record({ op: op('create'), project, name })),
    of(4, fc.record({ op: op('rename'), project, name })),
    of(1, fc.record({ op: op('network'), project, network: fc.constantFrom(null, [], ['a.example.com']) })),
    of(1, fc.record({ op: op('delete'), project })),
    of(
      8,
      fc.record({
        op: op('upload'),
        project,
        build,
        zip: fc.constantFrom('z0', 'z1', 'z2', 'z3', 'bad'),
        live: fc.boolean(),
      }),
    ),
    of(6, fc.record({ op: op('deploy'), project, build })),
    of(2, fc.record({ op: op('deleteBuild'), project, build })),
  ),

  step(state, command) {
    const known = state[command.project]
    if (command.op === 'create') {
      if (known === null) refuse('not_found')
      if (known) return // a repeat
      demandName(state, command.name)
      state[command.project] = newProject(command.name)
      return
    }
    if (!known) return refuse('not_found')
    switch (command.op) {
      case 'rename':
        if (known.name !== command.name) demandName(state, command.name)
        known.name = command.name
        return
      case 'network':
        known.network = command.network
        return
      case 'delete':
        state[command.project] = null
        return
      case 'upload':
        return upload(known, command)
      case 'deploy': {
        const wanted = known.builds[command.build] ?? refuse('not_found')
        if (pathsOf(wanted).some((path) => (ownerOf(state, path) ?? command.project) !== command.project))
          refuse('conflict')
        known.deployed = command.build
        return
      }
      case 'deleteBuild':
        if (known.gone[command.build]) return
        if (!known.builds[command.build]) refuse('not_found')
        if (known.deployed === command.build) refuse('conflict')
        end(known, command.build)
        return
      default:
        return command satisfies never
    }
  },

  view: (state) => ({
    projects: mapOf(state, ({ name, network, builds, deployed, lives }) => ({
      name,
      network,
      builds: Object.fromEntries(
        Object.entries(builds)
          .map(([id, { zip, live }]) => [
            id,
            `${zip}${live ? ' live' : ''}${id === deployed ? ' deployed' : ''}`,
          ])
          .sort(),
      ),
      live: lives.at(-1) ?? null,
    })),
    webhooks: PATHS.map((path) => ownerOf(state, path) ?? null),
  }),

  repeats: () => true,

  excuse(command, other): Excuse<ProjectsState> {
    if (command.op === 'deploy' && other.op === 'deploy') return { refused: ['conflict'] } // its address is being reserved
    // These replies are read after the command: the project or build may be gone by then.
    const ends = other.op === 'delete' || other.op === 'deleteBuild' || other.op === 'upload'
    if (command.op === 'upload' && ends) return { refused: ['not_found'] }
    if (command.op === 'create' && other.op === 'delete') return { refused: ['not_found'] }
    return {}
  },

  open: openProjects,
}

const demandName = (state: ProjectsState, name: string): void => {
  if (!NAME.test(name)) refuse('bad_request')
  if (Object.values(state).some((project) => project?.name === name)) refuse('project_exists')
}

const upload = (
  known: Project,
  { build, zip, live }: Extract<ProjectsCommand, { op: 'upload' }>,
): { existed: boolean } => {
  if (known.gone[build]) refuse('conflict')
  const before = known.builds[build]
  if (before) {
    if (before.zip !== zip || before.live !== live) refuse('conflict')
    return { existed: true }
  }
  if (webhooksIn[zip] === null) refuse('bad_request')
  known.builds[build] = { zip, live }
  if (live) known.lives.push(build)
  const replaceable = known.lives.filter((id) => id !== known.deployed)
  for (const old of replaceable.slice(0, -KEPT_LIVE)) end(known, old)
  return { existed: false }
}

const end = (project: Project, build: string): void => {
  delete project.builds[build]
  project.lives = project.lives.filter((id) => id !== build)
  project.gone[build] = true
}

const pathsOf = (build: Build | undefined): readonly string[] => (build && webhooksIn[build.zip]) ?? []

/** The project that serves a webhook. */
const ownerOf = (state: ProjectsState, path: string): string | undefined =>
  Object.keys(state).find((id) => {
    const project = state[id]
    return project?.deployed && pathsOf(project.builds[project.deployed]).includes(path)
  })

const mapOf = <T>(state: ProjectsState, viewOf: (project: Project) => T): Record<string, T> =>
  Object.fromEntries(
    Object.entries(state)
      .flatMap(([id, project]) => (project ? [[id, viewOf(project)]] : []))
      .sort(),
  )
