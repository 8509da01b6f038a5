add_action( 'wp_footer', function () {
	?>
	<script type="module" src="https://comments.example/widget/flatthread.js" data-site="blog" async></script>
	<script type="module" src="https://comments.example/widget/count.js" data-site="blog" async></script>
	<?php
} );
