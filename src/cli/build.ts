import { resolve } from 'node:path'
import { bundleOnce } from '../bundle/bundleOnce.ts'
import { inspectZip } from '../bundle/inspectZip.ts'
import { readSettings } from '../bundle/settings.ts'
import { adviceFor } from '../disk/fullDisk.ts'
import { AppError, messageOf } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { FUNCTION_COLUMNS, inputsText, largestInputs, warningsOf, warningsText } from './bundleTexts.ts'
import { command } from './command.ts'
import { toFunction } from './deployBundle.ts'
import { bytes } from './figures.ts'
import { writeAgain } from './newFile.ts'
import { warningsIn, withSourcePlaces } from './sourcePlaces.ts'
import { newFile } from './values.ts'

export const FOLDER_ARGUMENT = {
  description: 'the folder of the project (default: the working directory)',
  count: 'optional',
} as const

export const buildCommand = command({
  name: 'build',
  summary: 'bundle a project and check its functions',
  description:
    'Bundles the modules of a project with their dependencies, loads the build in the sandbox as an upload does, and lists ' +
    'its functions. Nothing is sent. A build above 1 MB is listed with its ten largest inputs.',
  arguments: { FOLDER: FOLDER_ARGUMENT },
  options: { out: { value: 'FILE', description: 'write the build into this zip', parse: newFile } },
  examples: ['svc build', 'svc build orders --out orders.zip'],
  async run({ args, options, table, signal }) {
    const { project, ...settings } = readSettings(args.FOLDER ?? '.')
    const bundle = await bundleOnce({ project, ...settings })
    const sources = { folder: settings.folder, modules: bundle.modules }
    const inspected = await withSourcePlaces(sources, () => inspectZip(bundle.zip))
    const functions = inspected.functions.map(toFunction)
    signal.throwIfAborted()
    const out = options.out === undefined ? null : resolve(options.out)
    if (out !== null) writeZip(out, bundle.zip)
    const { sha256: hash, modules } = bundle
    const [inputs, size] = [largestInputs(bundle), bundle.zip.length]
    const warnings = [...warningsOf(bundle), ...warningsIn(inspected.warnings, sources)]
    const where = out === null ? '' : `  in ${onOneLine(out)}`
    return {
      json: { project, hash, size, file: out, modules, functions, largest_inputs: inputs, warnings },
      text:
        table(functions, FUNCTION_COLUMNS) +
        inputsText(inputs) +
        warningsText(warnings) +
        `${project}: ${bytes(size)}${where}\n`,
    }
  },
})

const writeZip = (file: string, zip: Uint8Array): void => {
  try {
    writeAgain(file, zip)
  } catch (error) {
    throw new AppError(
      'bad_request',
      `--out: cannot write ${onOneLine(file)}: ${messageOf(error)}${adviceFor(error)}`,
      {
        cause: error,
      },
    )
  }
}
