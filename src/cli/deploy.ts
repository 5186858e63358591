import type { Bundle } from '../bundle/bundle.ts'
import { bundleOnce } from '../bundle/bundleOnce.ts'
import { inspectZip } from '../bundle/inspectZip.ts'
import { projectName, readSettings } from '../bundle/settings.ts'
import type { Build } from '../client/api.ts'
import type { Client } from '../client/client.ts'
import { functionChanges } from '../domain/functionChanges.ts'
import { FOLDER_ARGUMENT } from './build.ts'
import { changesText, inputsText, largestInputs, warningsOf, warningsText } from './bundleTexts.ts'
import { command } from './command.ts'
import {
  deployBundle,
  type DeployedBundle,
  hasTrigger,
  ifFound,
  releaseWith,
  toFunction,
} from './deployBundle.ts'
import { bytes } from './figures.ts'
import { warningsIn, withSourcePlaces } from './sourcePlaces.ts'

/** An upload of this size takes a while on a slow connection; bytes. */
const BIG_UPLOAD = 1_000_000

/** A deployment, or what one would do. */
type Outcome = DeployedBundle & { readonly removes_all_handlers?: boolean }

export const deployCommand = command({
  name: 'deploy',
  summary: 'bundle a project and deploy it',
  description:
    'Bundles a project, uploads the build and deploys it. The project is created in the service if it is missing. A build that ' +
    'the service has is not uploaded again. A deployment that takes all handlers of a project away needs a confirmation: a ' +
    'handler is a function that an event, a schedule or a webhook starts. --dry-run prints the difference and changes nothing.',
  arguments: { FOLDER: FOLDER_ARGUMENT },
  options: {
    project: {
      value: 'NAME',
      description: 'the project in the service (default: from package.json)',
      parse: projectName,
    },
    'dry-run': { description: 'print what a deployment would change' },
  },
  examples: ['svc deploy', 'svc deploy orders --dry-run', 'svc deploy --project orders-staging --yes'],
  confirms: 'sometimes',
  ofEnvironment: true,
  async run({ args, options, client: connect, progress, confirm, signal }) {
    const settings = readSettings(args.FOLDER ?? '.')
    const project = options.project ?? settings.project
    const client = connect()
    const bundle = await bundleOnce(settings)
    signal.throwIfAborted()
    const bar = bundle.zip.length > BIG_UPLOAD ? progress('bytes') : null
    const isDry = options['dry-run']
    const before = isDry ? null : await deployedBuild(client, project, signal)
    const sources = { folder: settings.folder, modules: bundle.modules }
    const outcome = await withSourcePlaces(sources, (): Promise<Outcome> =>
      isDry
        ? preview(client, project, bundle, signal)
        : deployBundle(client, {
            project,
            bundle,
            signal,
            onProgress: bar ? (sent, total) => bar.report(sent, total) : undefined,
            confirmLoss: () => {
              bar?.end() // the question takes its line
              return confirm(`Remove all handlers of ${project}: nothing starts its functions any more?`)
            },
          }),
    )
    bar?.end()
    const warnings = [...warningsOf(bundle), ...warningsIn(outcome.warnings, sources)]
    const inputs = largestInputs(bundle)
    return {
      json: {
        ...outcome,
        dry_run: isDry,
        size: bundle.zip.length,
        largest_inputs: inputs,
        warnings,
      },
      text:
        changesText(outcome.changes) +
        inputsText(inputs) +
        warningsText(warnings) +
        `${project}: ${bytes(bundle.zip.length)}, ${endOf(outcome, { isDry, before })}\n`,
    }
  },
})

const endOf = (
  { build_id, deployed, project, removes_all_handlers }: Outcome,
  { isDry, before }: { readonly isDry: boolean; readonly before: Build | null },
): string => {
  if (!deployed) return `unchanged: the build is deployed already`
  if (isDry) return `nothing was changed${removes_all_handlers ? '; a deployment removes all handlers' : ''}`
  const undo = before?.build_type === 'release' ? `; svc rollback ${project} returns to the build before` : ''
  return `deployed as ${build_id}${undo}`
}

/** The deployed build; null if there is none. */
const deployedBuild = (client: Client, project: string, signal: AbortSignal): Promise<Build | null> =>
  ifFound(client.request('GET /v1/projects/{project}/builds/deployed', { path: { project }, signal }))

/** Compares a bundle with the deployed build. The functions of both are read on this machine. */
const preview = async (
  client: Client,
  project: string,
  { zip, sha256: hash }: Bundle,
  signal: AbortSignal,
): Promise<Outcome> => {
  const known = await ifFound(releaseWith(client, project, hash, { signal }))
  const current = await deployedBuild(client, project, signal)
  const before = current
    ? await inspectZip(await downloaded(client, project, current.build_id, signal))
    : null
  const after = await inspectZip(zip)
  const functions = after.functions.map(toFunction)
  const former = before?.functions ?? []
  return {
    build_id: known?.build_id ?? '',
    project,
    hash,
    uploaded: !known,
    deployed: !known?.deployed,
    functions,
    changes: functionChanges(former, after.functions),
    warnings: after.warnings,
    removes_all_handlers: former.map(toFunction).some(hasTrigger) && !functions.some(hasTrigger),
  }
}

const downloaded = async (
  client: Client,
  project: string,
  build_id: string,
  signal: AbortSignal,
): Promise<Uint8Array> => {
  const operation = 'GET /v1/projects/{project}/builds/{build_id}/download'
  return (await client.open(operation, { path: { project, build_id }, signal })).bytes()
}
