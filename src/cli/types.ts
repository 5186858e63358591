import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { bundleOnce } from '../bundle/bundleOnce.ts'
import { findEntries } from '../bundle/entries.ts'
import { inspectZip } from '../bundle/inspectZip.ts'
import { readSettings, type Settings } from '../bundle/settings.ts'
import { adviceFor } from '../disk/fullDisk.ts'
import { AppError, messageOf } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { FOLDER_ARGUMENT } from './build.ts'
import { command } from './command.ts'
import { asEditor } from './fileModes.ts'
import { writeAgain } from './newFile.ts'
import { withSourcePlaces } from './sourcePlaces.ts'
import { type TypedFunction, typesText } from './typesText.ts'
import { newFile } from './values.ts'

const FILE = 'svc.gen.d.ts'

export const typesCommand = command({
  name: 'types',
  summary: 'write the types of the functions and events of a project',
  description:
    `Bundles a project, reads its functions as an upload does, and writes their names into ${FILE}. The types themselves ` +
    'are those of the sources, so they follow every edit; repeat the command after a function or an event has a new name. ' +
    'The data of an event has the type of the parameter of its handler, or of all of its handlers together. Nothing is sent.',
  arguments: { folder: FOLDER_ARGUMENT },
  options: {
    out: { value: 'FILE', description: `the file to write (default: ${FILE} in the folder)`, parse: newFile },
  },
  examples: ['svc types', 'svc types orders --out types/svc.d.ts'],
  async run({ args, options, signal }) {
    const settings = readSettings(args.folder ?? '.')
    const out = options.out === undefined ? join(settings.folder, FILE) : resolve(options.out)
    const functions = await functionsOf(settings, out)
    signal.throwIfAborted()
    const text = typesText(functions)
    const changed = write(out, text)
    const events = [...new Set(functions.flatMap(({ onEvent }) => onEvent ?? []))].toSorted()
    const refs = functions.map(({ ref }) => ref)
    return {
      json: { file: out, changed, functions: refs, events },
      text: `${onOneLine(out)}  functions: ${refs.length}  events: ${events.length}\n`,
    }
  },
})

const functionsOf = async (settings: Settings, out: string): Promise<readonly TypedFunction[]> => {
  const files = new Map(findEntries(settings).map((entry) => [entry.out.replaceAll('/', '.'), entry.file]))
  const { zip, modules } = await bundleOnce(settings)
  const { functions } = await withSourcePlaces({ folder: settings.folder, modules }, () => inspectZip(zip))
  return functions.flatMap(({ ns, var: name, on_event }) => {
    const file = files.get(ns)
    if (file === undefined) return []
    const path = relative(dirname(out), join(settings.folder, settings.src, file)).replaceAll('\\', '/')
    const module = path.startsWith('.') ? path : `./${path}`
    return [{ ref: `${ns}/${name}`, var: name, onEvent: on_event, module }]
  })
}

/** Returns false if the file has this text: an editor would read it again. */
const write = (file: string, text: string): boolean => {
  try {
    if (existsSync(file) && readFileSync(file, 'utf8') === text) return false
    asEditor(() => writeAgain(file, text))
    return true
  } catch (error) {
    throw new AppError(
      'bad_request',
      `out: cannot write ${onOneLine(file)}: ${messageOf(error)}${adviceFor(error)}`,
      {
        cause: error,
      },
    )
  }
}
