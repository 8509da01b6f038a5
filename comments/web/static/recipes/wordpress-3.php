<?php
if ( post_password_required() ) {
	return;
}
?>
<div id="flatthread" data-site="blog" data-thread="wp-<?php the_ID(); ?>"></div>
