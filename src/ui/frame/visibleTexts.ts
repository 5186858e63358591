import { type ComponentChildren, options, type VNode } from 'preact'

/**
 * Characters that have no width, and those that turn the direction of the text around them. With them, one name looks like
 * another one: `\u202etxt.exe` reads as `exe.txt`. The joiners and variants of letters and emoji are not among them, nor the
 * tags in a flag.
 */
const DECEPTIVE =
  /(?!\u200c|\u200d|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}])(?<!\u{1f3f4}[\u{e0020}-\u{e007e}]{0,6}(?=[\u{e0020}-\u{e007f}]))\p{Default_Ignorable_Code_Point}/gu

const escaped = (one: string): string =>
  Array.from(
    { length: one.length },
    (_, at) => `\\u${one.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('')

/** In JSON, such as that of a field, the escape is the same value. */
export const visible = (text: string): string => text.replace(DECEPTIVE, escaped)

const visibleIn = (child: ComponentChildren): ComponentChildren => {
  if (typeof child === 'string') return visible(child)
  return Array.isArray(child) ? child.map(visibleIn) : child
}

/** Shows the deceptive characters in every text of the page as their escapes, as in JSON. Values of fields remain as they are. */
export const showDeceptiveTexts = (): void => {
  const next = options.vnode?.bind(options)
  options.vnode = (node: VNode<{ children?: ComponentChildren }>) => {
    if (typeof node.type === 'string') node.props.children = visibleIn(node.props.children)
    next?.(node)
  }
}
