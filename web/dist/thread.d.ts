/** What runs in the Worker of a page. */
import "./platform-web.js";
